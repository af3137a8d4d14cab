"""The recipes of hard negatives that README and docs show are exchanged words, and build as they stand."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.docs.test_readme_commands import section
from tests.generators.exchanged_negatives.test_exchanged_negatives import CAPTIONS
from twinset.cli.main import main

PAGES = (
    ("README.md", "Hard negatives"),
    ("docs/bivlc_trohn.md", "From captions to an export"),
)


def shown(page: str, heading: str) -> str:
    found = re.search(r"```yaml\n(.*?)```", section(page, heading), re.DOTALL)
    assert found, f"{page} shows no recipe under {heading}"
    return found[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page[0])
def test_what_is_shown_first_exchanges_words(page: tuple[str, str]) -> None:
    recipe = yaml.safe_load(shown(*page))
    kinds = [stage["source"]["kind"] for stage in recipe["stages"].values()]
    assert kinds[:2] == ["caption-words", "exchanged-negatives"] and "negative-captions" not in kinds
    assert "twinset build hard.yaml --out out/hard" in section(*page)


def test_the_recipe_of_the_readme_builds_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sng_parser")
    images = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in range(len(CAPTIONS))]
    annotations = [{"id": at, "image_id": at, "caption": caption} for at, caption in enumerate(CAPTIONS)]
    (tmp_path / "captions_train2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (tmp_path / "train2017").mkdir()
    for number, image in enumerate(images):
        pixels = np.full((16, 16, 3), number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "train2017" / str(image["file_name"]))
    (tmp_path / "hard.yaml").write_text(shown(*PAGES[0]).replace("/data/", f"{tmp_path}/"))
    monkeypatch.chdir(tmp_path)
    assert main(["build", "hard.yaml", "--out", "out/hard"]) == 0
    counts = json.loads((tmp_path / "out/hard/hard/_meta/sizes.json").read_text())
    assert sum(counts.values()) > len(CAPTIONS)
