"""Pairs of a photo and a generated image: joined over three stages, chosen by score, made of real pictures."""

import csv
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import twinset
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.generated_pairs.joining import best_images
from twinset_demo import MINIATURE

OTHERS = ("red box", "blue dog", "green ball", "white house", "black cat")  # some of which are not ambiguous


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small_world")
    shutil.copytree(MINIATURE / "small_world", folder, dirs_exist_ok=True)
    rows = list(csv.reader((folder / "negatives.csv").open(newline="")))[:3]
    with (folder / "negatives.csv").open("w", newline="") as stream:
        gone = [["gone.png", "a photo of a red car", f"a photo of a {text}", "replace", "obj"] for text in OTHERS]
        csv.writer(stream).writerows([*rows, *gone])
    return folder


def make_recipe(stages: dict[str, Any], subsets: dict[str, Any]) -> Recipe:
    return parse_recipe({"name": "small", "max_missing": 1, "stages": stages, "subsets": subsets})


def stages(world: Path, sides: list[str], each: int, steps: int) -> dict[str, Any]:
    """Negatives, prompts, images of the small model and their verification."""
    drawer = {"kind": "diffusers", "model": "small", "steps": steps}
    drawing = {"kind": "negative-images", "negatives": "prompts", "engine": drawer, "images_per_caption": each}
    engine = {"kind": "vqa", "model": str(world / "blip")}
    return {
        "negatives": {"source": {"kind": "replayed-negatives", "captions": str(world / "negatives.csv")}},
        "prompts": {"source": {"kind": "negative-prompts", "negatives": "negatives", "suffix": ""}},
        "images": {"source": {**drawing, "sides": sides, "suffix": ""}, "encoding": {"format": "png"}},
        "verified": {"source": {"kind": "image-verification", "images": "images", "engine": engine}},
    }


def test_people_who_choose_need_a_stage_of_decisions(world: Path) -> None:
    source = {"kind": "generated-pairs", "negatives": "prompts", "images": "images", "choice": "people"}
    with pytest.raises(twinset.WrongUse, match="read from a stage of decisions; name it with decisions"):
        make_recipe(stages(world, ["negative_caption"], 1, 2), {"x": {"source": source}})


Score = float | None


def best(captions: list[int], scores: list[Score], originals: list[Score]) -> tuple[dict[int, int], list[bool]]:
    """The place of the best image of each caption, and whether each fits the original one too."""
    numbers = {"score": scores, "original": originals}
    images = pl.DataFrame({"row": captions, **numbers}, schema_overrides=dict.fromkeys(numbers, pl.Float64))
    chosen = best_images(images.with_columns(verified=True).with_row_index("place")).sort("row")
    return dict(chosen.select("row", "place").rows()), chosen["ambiguous"].to_list()


def test_the_best_of_k_and_of_equal_ones_the_first() -> None:
    scores: list[Score] = [0.5, 0.2, 0.9, 0.8, 0.9, 0.0, None, 0.0, None]
    assert best([1, 0, 1, 0, 1, 3, 4, 4, 5], scores, [None] * 9)[0] == {0: 3, 1: 2, 3: 5, 4: 7, 5: 8}
    assert best([], [], []) == ({}, [])


def test_an_image_that_fits_the_original_caption_as_well_is_ambiguous() -> None:
    chosen = best([*range(6)], [1.0, 1.0, 0.5, 0.8, 0.7, None], [1.0, 0.9, 0.5, 0.2, None, 1.0])
    assert chosen[1] == [True, False, True, False, False, True]
    assert best([0, 0, 1, 1], [1.0, 0.9, 0.6, 0.7], [1.0, 0.0, 0.0, 0.1]) == ({0: 0, 1: 3}, [True, False])
