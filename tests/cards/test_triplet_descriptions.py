"""Card, Croissant metadata and loaders of triplets, with images and without."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cards.describe import describe
from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.recipe import content_of, load_recipe
from manifests.stage import parse_stage
from shards.export.formats import export
from shards.kinds.reading import StoredTriplet
from shards.read import read_samples
from shards.storage.store import Store
from tests import small_genecis

MINING = {
    "rules": "strict",
    "threshold": 4.8,
    "min_images": 5,
    "funnels": {"published": {"captions": 1200, "relations": 900}, "strict": {"captions": 1200, "both rated": 31}},
    "mined": 1000,
    "left_out": 0,
    "subjects": {"dog|<b>": 250, "man": 20},
    "predicates": {"in": 500},
    "objects": {"car": 125},
    "edges": [4.8, 5.0],
    "histogram": [1000],
    "differences": {
        "triplets": 20_000,
        "same_object": 0.0123,
        "distractor_of_target_image": 0.25,
        "any": 0.4567,
        "strict_dropped": 0.031,
        "overwritten": [{"word": "glass`es", "rated": 4.5, "published": 4.82, "relations": 9}],
    },
}


def _described(store: Store, subset: str) -> str:
    describe(store, [subset])
    return store.read(f"{subset}/README.md").decode()


@pytest.mark.parametrize("subset", ["triplets", "two-images", "index-only"])
def test_the_card_of_triplets_says_what_they_are(small_triplets: Store, subset: str) -> None:
    text = _described(small_triplets, subset)
    front = yaml.safe_load(text.split("---")[1])
    path = "_meta/index.parquet" if subset == "index-only" else "train/*.tar"
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": path}]
    assert ("webdataset" in front["tags"]) == (subset != "index-only")
    assert "8 triplets, mined the way GeneCIS mines its training data" in text and "EqBen" not in text
    assert "| rejected by generator | missing-media | −1 | 11.1 % |" in text and "| distinct conditions | 7 |" in text
    assert "reference.jpg, target.jpg" in text or subset == "index-only"
    assert ("distractor.jpg" in text) == (subset == "triplets")
    assert ("Images and captions stay" in text) == (subset != "index-only")
    for cited in ("vaze2023genecis", "sharma2018conceptual", "brysbaert2014concreteness"):
        assert cited in text
    assert r"source: CC0-1.0 \<b>captions\</b>." in text
    assert "<script" not in text and small_genecis.LONG[:200] not in text
    assert "| beside blue disc | 2 | 25.0 % |" in text
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert len(pictures) == (1 if subset == "index-only" else 2)
    assert all(small_triplets.size(f"{subset}/{picture}") for picture in pictures)


def test_the_card_says_by_how_much_the_rules_differ(small_triplets: Store) -> None:
    without = _described(small_triplets, "triplets")
    assert "`rules: strict` made these" in without and "20,000" not in without
    small_triplets.write("triplets/_meta/mining.json", json.dumps(MINING).encode())
    text = _described(small_triplets, "triplets")
    assert "Of 20,000 triplets that the published rules mine" in text
    assert "| reference and target have one object | 1.23% |" in text
    assert "| the distractor is the target's image | 25.00% |" in text and "| any of these | 45.67% |" in text
    assert "3.10% of strict triplets miss the threshold" in text and r"glass\`es (4.5 → 4.82)" in text
    assert "| captions | 1,200 | 1,200 |" in text and "| both rated | – | 31 |" in text
    assert "| subjects | dog\\|&lt;b> (25.0%), man (2.0%) |" in text
    nothing = {**MINING, "differences": None}
    small_triplets.write("triplets/_meta/mining.json", json.dumps(nothing).encode())
    assert "the published rules find no triplet at all" in _described(small_triplets, "triplets")
    small_triplets.write("triplets/_meta/mining.json", b"{")
    with pytest.raises(WrongUse, match=r"mining\.json: no JSON .*remove it"):
        _described(small_triplets, "triplets")


def test_published_triplets_are_called_so(small_triplets: Store, tmp_path: Path) -> None:
    settings = {**small_genecis.triplet_sources(tmp_path)["triplets"], "rules": "published"}
    small_genecis.build(small_triplets, "published", settings, count=2)
    text = _described(small_triplets, "published")
    assert "`rules: published` made these" in text and "of 101 draws the last one passes" in text
    assert "reference, target and distractor (1 to 5, in a file" in text
    assert "with another subject" not in text and "may have the target's subject or be its very image" in text
    assert "with another subject" in _described(small_triplets, "triplets")


@pytest.mark.parametrize("subset", ["triplets", "index-only"])
def test_the_recipe_in_the_card_makes_the_same_stage(small_triplets: Store, tmp_path: Path, subset: str) -> None:
    block = re.search(r"```yaml\n(.*?)```", _described(small_triplets, subset), re.DOTALL)
    assert block is not None
    (tmp_path / "recipe.yaml").write_text(block[1], "utf-8")
    recipe = load_recipe(str(tmp_path / "recipe.yaml"))
    stage = parse_stage("stage", small_triplets.read(f"{subset}/_meta/stage.json"))
    settings = content_of(recipe.subsets[subset], recipe.seed)
    assert digest({**stage.facts, "settings": settings}) == stage.content


def test_mlcroissant_validates_and_reads_triplets(small_triplets: Store, mlcroissant: Any) -> None:
    describe(small_triplets, ["two-images"])
    path = Path(small_triplets.root) / "two-images" / "_meta" / "croissant.json"
    dataset = mlcroissant.Dataset(jsonld=str(path))
    assert not dataset.metadata.ctx.issues.errors
    assert "distractor_sha256" not in path.read_text("utf-8"), "images that no triplet has are named nowhere"
    stored = {one.key: one for one in read_samples(small_triplets, "two-images")}
    targets = {row["target/key"].decode(): row["target/content"].size for row in dataset.records("target")}
    rows = {row["triplets/key"].decode(): row for row in dataset.records("triplets")}
    assert rows.keys() == targets.keys() == stored.keys()
    for key, one in stored.items():
        assert isinstance(one, StoredTriplet)
        assert targets[key] == one.json.images["target"].size
        assert rows[key]["triplets/condition"].decode() == one.condition
        assert rows[key]["triplets/target_caption"].decode() == one.json.captions["target"]


def test_mlcroissant_reads_an_index_without_tars(small_triplets: Store, mlcroissant: Any) -> None:
    describe(small_triplets, ["index-only"])
    path = Path(small_triplets.root) / "index-only" / "_meta" / "croissant.json"
    dataset = mlcroissant.Dataset(jsonld=str(path))
    assert not dataset.metadata.ctx.issues.errors
    rows = list(dataset.records("triplets"))
    assert [row["triplets/reference_id"].decode() for row in rows] == ["0", "1", "2", "4", "5", "6", "7", "8"]
    assert [one["@type"] for one in json.loads(path.read_bytes())["distribution"]] == ["cr:FileObject"]


@pytest.mark.parametrize("subset", ["triplets", "index-only"])
def test_load_dataset_reads_what_the_card_says(small_triplets: Store, tmp_path: Path, subset: str) -> None:
    datasets = pytest.importorskip("datasets")
    describe(small_triplets, [subset])
    folder = str(Path(small_triplets.root) / subset)
    found = list(datasets.load_dataset(folder, split="train", cache_dir=str(tmp_path / "cache")))
    assert len(found) == 8
    if subset == "index-only":
        assert found[0]["condition"] == "beside red disc" and found[0]["target_id"] == "1"
        return
    for row, one in zip(found, read_samples(small_triplets, subset), strict=True):
        assert isinstance(one, StoredTriplet)
        assert row["condition.txt"] == one.condition and row["json"]["captions"] == one.json.captions
        assert row["distractor.jpg"].size == one.json.images["distractor"].size


def test_webdataset_reads_every_image(small_triplets: Store) -> None:
    webdataset = pytest.importorskip("webdataset")
    tars = sorted(map(str, (Path(small_triplets.root) / "two-images" / "train").glob("*.tar")))
    rows = list(webdataset.WebDataset(tars, shardshuffle=False).decode("pil"))
    stored = list(read_samples(small_triplets, "two-images"))
    assert [row["__key__"] for row in rows] == [one.key for one in stored]
    assert all({"reference.jpg", "target.jpg", "condition.txt", "json"} <= row.keys() for row in rows)


@pytest.mark.parametrize("subset", ["triplets", "index-only"])
@pytest.mark.parametrize("format", ["eqben", "openclip", "genecis"])
def test_no_export_holds_triplets(small_triplets: Store, tmp_path: Path, subset: str, format: str) -> None:
    with pytest.raises(
        WrongUse, match=rf"{subset} holds triplets, and --format {format} .* webdataset or load_dataset"
    ):
        export(small_triplets, [subset], format, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_a_subset_that_keeps_nothing_is_described_too(small_triplets: Store) -> None:
    for name in small_triplets.names("two-images/_meta/receipts"):
        small_triplets.remove(f"two-images/_meta/receipts/{name}")
    text = _described(small_triplets, "two-images")
    assert "No triplet is kept of the 0 planned" in text and "load_dataset" not in text and "![" not in text
