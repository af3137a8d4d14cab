"""The card says what is true of the data, and how to make it again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cards.card import card
from cards.card_notes import notes
from cards.describe import describe
from cards.reasons import MEANINGS
from cards.summary import IndexSummary, Statistics, WordUse
from manifests.canonical import digest
from manifests.errors import WrongUse
from manifests.recipe import content_of, load_recipe
from shards.export.formats import export

_NUMBERS = Statistics({1: 2}, {1: 1}, 1.0, (), (), 0.0, 1, 1, 0, {}, {}, None)


def _read(dataset: Any, subset: str) -> str:
    describe(dataset.store, [subset])
    return (dataset.root / subset / "README.md").read_text("utf-8")


def test_the_card_counts_what_is_there(small_dataset: Any) -> None:
    text = _read(small_dataset, "eq-youcook2")
    front = yaml.safe_load(text.split("---")[1])
    assert front["configs"][0]["data_files"] == [{"split": "test", "path": "test/*.tar"}]
    assert front["size_categories"] == ["n<1K"]
    assert "| planned |  | 12 | 100.0 % |" in text
    assert "| rejected by generator | missing-media | −3 | 25.0 % |" in text
    assert "| rejected by equal-captions | equal-captions | −1 | 8.3 % |" in text
    assert "| **kept** |  | **8** | 66.7 % |" in text
    assert "| distinct images | 9 |" in text and "96 × 72 (8)" in text
    assert "Image 0 comes first in time in 100.0%" in text
    assert "YouTube videos, non-commercial research use" in text
    assert "zhou2018youcook2" in text and "wang2023eqben" in text
    assert "<script>" not in text
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (small_dataset.root / "eq-youcook2" / picture).is_file()


def test_the_recipe_in_the_card_makes_the_same_stage(small_dataset: Any, tmp_path: Path) -> None:
    block = re.search(r"```yaml\n(.*?)```", _read(small_dataset, "eq-ag"), re.DOTALL)
    assert block is not None
    (tmp_path / "recipe.yaml").write_text(block[1], "utf-8")
    recipe = load_recipe(str(tmp_path / "recipe.yaml"))
    stage = small_dataset.stages["eq-ag"]
    settings = content_of(recipe.subsets["eq-ag"], recipe.seed)
    assert settings == stage.facts["settings"]
    assert digest({**stage.facts, "settings": settings}) == stage.content


def test_hostile_words_stay_within_their_cells(small_dataset: Any) -> None:
    numbers = Statistics(
        caption_words={}, group_pairs={}, top_groups_share=0.0, frequent=(WordUse("a|b\n<b>", 1, 0, 1),), lopsided=(),
        longer0=0.0, distinct_captions=0, distinct_images=0, sampled=0, image_sizes={}, changes={}, earlier0=None,
    )  # fmt: skip
    one = IndexSummary(1, 1, {}, {}, {"test": 1}, 1, {}, 0)
    text = card(small_dataset.stages["eq-ag"], one, numbers)
    assert "| a\\|b &lt;b> | 1 | 1 | 0 |" in text


def test_descriptions_have_the_same_bytes_every_time(small_dataset: Any) -> None:
    def snapshot() -> dict[str, bytes]:
        describe(small_dataset.store, ["eq-ag", "eq-gebc"])
        return {str(path): path.read_bytes() for path in small_dataset.root.rglob("*") if path.is_file()}

    assert snapshot() == snapshot()


def test_a_subset_that_keeps_nothing_is_described_too(small_dataset: Any) -> None:
    for number in (0, 2, 3):
        small_dataset.store.remove(f"eq-ag/_meta/receipts/{number:05d}.json")
    assert describe(small_dataset.store, ["eq-ag"])["eq-ag"].kept == 0
    text = (small_dataset.root / "eq-ag" / "README.md").read_text("utf-8")
    assert "| **kept** |  | **0** | 0.0 % |" in text and "No pair is kept of the 3 planned" in text
    assert "load_dataset" not in text and "![" not in text and "configs" not in yaml.safe_load(text.split("---")[1])
    with pytest.raises(WrongUse, match=r"no finished shard of eq-ag keeps a pair; twinset status"):
        export(small_dataset.store, ["eq-ag"], "eqben", small_dataset.root.parent / "export")


def test_odd_reasons_and_terms_are_explained(small_dataset: Any) -> None:
    text = _read(small_dataset, "eq-ag")
    assert "* `missing-media`: the video, frame, image or asset" in text and "* `equal-captions`: no caption" in text
    assert "* The stage digest is" in text and "* The runtime class names" in text
    stage = small_dataset.stages["eq-ag"].model_copy(update={"excluded": {"pair-unsayable": 3, "brand-new": 1}})
    counted = card(stage, IndexSummary(1, 1, {}, {}, {"test": 1}, 1, {}, 0), _NUMBERS)
    assert "brand-new 1, pair-unsayable 3" in counted and "* `pair-unsayable`: pairs in which" in counted


def test_every_reason_that_a_source_counts_has_a_meaning() -> None:
    counted = set()
    for path in (Path(__file__).parents[2] / "generators").rglob("*.py"):
        counted |= set(re.findall(r'(?:excluded\[|Refuted\(|NoRoom\()"([a-z-]+)"', path.read_text("utf-8")))
    for path in (Path(__file__).parents[2] / "filters").glob("*.py"):
        counted |= set(re.findall(r'Drop\("([a-z-]+)"', path.read_text("utf-8")))
    assert len(counted) > 25 and counted <= MEANINGS.keys()


def test_the_card_of_rendered_pairs_speaks_of_scenes(small_dataset: Any) -> None:
    settings = {"seed": 0, "encoding": {"format": "jpg"}, "source": {"kind": "kubric", "aspect": "location"}}
    stage = small_dataset.stages["eq-ag"]
    stage = stage.model_copy(update={"facts": {**stage.facts, "settings": settings}, "excluded": {"name-unmapped": 8}})
    one = IndexSummary(1, 1, {}, {}, {"test": 1}, 1, {}, 0)
    text = card(stage, one, _NUMBERS)
    assert (
        "| scenes | 1 |" in text and "The tenth of" not in text and "Left out before planning: name-unmapped 8" in text
    )
    assert not re.search(r"\b(videos?|media|annotations?)\b", text)
    assert "path/to" not in text.split("## How to make it again")[1]
    assert "assets: path/to/assets" in card(stage, one, _NUMBERS, ["assets"])


def test_the_card_of_drawn_pairs_speaks_of_their_model_and_words() -> None:
    def said(recipe: str) -> str:
        return notes(load_recipe(recipe).subsets["eq-sd"].source.model_dump())

    assert "small one, which knows one drawn world" in said("demo") and "without a place or an hour:" in said("demo")
    assert "small one" not in said("eqben") and "without a scene or a thing to wear:" in said("eqben")


def test_a_licence_is_shown_as_text(small_dataset: Any) -> None:
    stage = small_dataset.stages["eq-ag"]
    settings = dict(stage.facts["settings"])
    settings["source"] = {**settings["source"], "licence": "CC0\n# Gotcha ![x](http://e/x.png) <img src=y> `a`"}
    stage = stage.model_copy(update={"facts": {**stage.facts, "settings": settings}})
    text = card(stage, IndexSummary(1, 1, {}, {}, {"test": 1}, 1, {}, 0), _NUMBERS)
    assert r"source: CC0 # Gotcha !\[x\](http://e/x.png) \<img src=y> \`a\`." in text


@pytest.mark.parametrize("kept, name", [(999, "n<1K"), (1000, "1K<n<10K"), (195_872, "100K<n<1M"), (10**6, "1M<n<10M")])
def test_the_size_category_is_hugging_faces(small_dataset: Any, kept: int, name: str) -> None:
    text = card(small_dataset.stages["eq-ag"], IndexSummary(kept, kept, {}, {}, {"test": kept}, 1, {}, 0), _NUMBERS)
    assert yaml.safe_load(text.split("---")[1])["size_categories"] == [name]
