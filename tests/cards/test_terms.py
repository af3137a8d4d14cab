"""A dataset of photographs with five licences: all that is said of it agrees."""

import csv
import json
import re
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

import twinset
from tests.made_datasets import MadeDataset
from tests.made_samples import pair_shards
from twinset.cards import terms
from twinset.contracts.licences.terms import Terms

LICENCES = {
    "CC0-1.0": "CC0",
    "CC-BY-2.0": "http://creativecommons.org/licenses/by/2.0/",
    "CC-BY-NC-SA-2.0": "cc-by-nc-sa-2.0",
    "CC-BY-ND-2.0": "CC BY-ND 2.0",
    "other: Flickr Commons": "other: Flickr Commons",
}
HOSTILE = "<b>Ada</b> *of* [x](http://e.example)|"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 pairs, 4 a licence, of 40 images; of CC-BY-2.0 one has no credit."""
    folder = tmp_path_factory.mktemp("five")
    records = []
    for number in range(20):
        images = {f"image{side}": f"{2 * number + side}.png" for side in (0, 1)}
        for side, name in enumerate(images.values()):
            Image.new("RGB", (32, 32), (6 * (2 * number + side),) * 3).save(folder / name)
        licence, credit = [*LICENCES.values()][number % 5], HOSTILE if number % 5 == 3 else f"author {number}"
        records.append({
            "id": number, **images, "caption0": f"a disc {number}", "caption1": f"a square {number}",
            "licence": licence, "credit": "" if number == 1 else credit, "category": "replace_obj",
            "source_url": f"https://photos.example/{number}", "split": "train" if number < 10 else "test",
        })  # fmt: skip
    (folder / "pairs.json").write_text(json.dumps(records))
    source = "{kind: image-pairs, annotations: pairs.json, media: ., licence: unknown, fields: {change: category}}"
    recipe = f"{{name: five, subsets: {{five: {{source: {source}, cites: ['@misc{{five, title = {{Five}}}}']}}}}}}"
    (folder / "five.yaml").write_text(recipe)
    twinset.build(folder / "five.yaml", folder / "out", workers=1)
    return folder / "out"


def json_in(folder: Path) -> list[dict[str, Any]]:
    found = []
    for tar in sorted(folder.rglob("*.tar")):
        with tarfile.open(tar) as opened:
            members = [opened.extractfile(one) for one in opened if one.name.endswith("json")]
            found += [json.load(one) for one in members if one is not None]
    return found


def test_sample_index_card_croissant_and_page_agree(out: Path) -> None:
    expected = Counter({name: 4 for name in LICENCES})
    samples = json_in(out / "five")
    assert Counter(one["licence"] for one in samples) == expected
    index = pq.read_table(out / "five/_meta/index.parquet")
    told = {(one["licence"], one["credit"], one["source_url"]) for one in samples}
    assert set(zip(*(index[name].to_pylist() for name in ("licence", "credit", "source_url")), strict=True)) == told
    assert len(told) == 20
    card = (out / "five/README.md").read_text()
    rows = re.findall(r"^\| (?:\[([^]]+)\]\([^)]*\)|(Flickr Commons)) \| (\d+) \| 20\.0 % \|$", card, re.MULTILINE)
    assert {name or f"other: {other}": int(count) for name, other, count in rows} == expected
    assert "**1 pairs have no credit, though their licence asks for one:**" in card
    assert "4 pairs may not be changed and passed on (NoDerivatives)" in card
    assert "| &lt;b>Ada&lt;/b> \\*of\\* `[x](http://e.example)\\|` | [CC-BY-ND-2.0]" in card
    front = yaml.safe_load(card.split("---")[1])
    assert front["license"] == ["cc-by-2.0", "cc-by-nc-sa-2.0", "cc0-1.0", "other"]
    pages = {f"https://spdx.org/licenses/{name}" for name in LICENCES if not name.startswith("other")}
    described = json.loads((out / "five/_meta/croissant.json").read_text())
    assert {*described["license"]} == pages | {"Flickr Commons"}
    page = (out / "look.html").read_text()
    assert all(f"{name}: 4" in page for name in LICENCES) and "https://photos.example/0" in page
    assert "&lt;b&gt;Ada" in page and "<b>Ada" not in page


def test_many_credits_are_a_file_and_few_a_table(made: MadeDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [
        [replace(one, terms=Terms("MIT", f"=author {one.identity}")) for one in shard] for shard in pair_shards("plain")
    ]
    made.add("plain", {"source": {"kind": "test-folder", "media": "/data"}}, plans)
    made.describe("plain")
    assert made.text("plain/README.md").count("| =author") == 8
    assert made.store.size("plain/_meta/credits.csv") is None
    monkeypatch.setattr(terms, "SHOWN", 7)
    made.describe("plain")
    assert "`_meta/credits.csv` lists 8 credits." in made.text("plain/README.md")
    rows = list(csv.reader(made.text("plain/_meta/credits.csv").splitlines()))
    assert rows[0] == ["credit", "licence", "samples"] and len(rows) == 9 and rows[1][0].startswith("'=author")
