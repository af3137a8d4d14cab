"""Images of negative captions: what is planned from a table, and what an engine makes of it."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.generators.finished_stage import finish, finished
from tests.models.diffusion.tiny_models import save_small
from twinset.generators.negative_captions.prompts import NegativePrompts
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.generators.negative_images import NegativeImages
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage

NEGATIVES = {
    "0": {"filename": "1.jpg", "caption": "a TV on grass ", "negative_caption": "A dog. on grass"},
    "1": {"filename": "2.jpg", "caption": "a red circle", "negative_caption": "a " + "very " * 70 + "red square"},
    "2": {"filename": "3.jpg", "caption": "A lion in the winter.", "negative_caption": "A squirrel in the winter."},
}
Earlier = Callable[[str], FinishedStage]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    """The finished stage ``prompts``."""
    folder = tmp_path_factory.mktemp("out")
    (folder / "replace_obj.json").write_text(json.dumps(NEGATIVES))
    finish(ReplayedNegatives(kind="replayed-negatives", captions=(folder / "replace_obj.json",)), folder, "negatives")
    prompts = NegativePrompts(kind="negative-prompts", negatives="negatives", suffix=", 4k")
    finish(prompts, folder, "prompts", context=Context("prompts", earlier=finished(folder, "negatives")))
    return finished(folder, "prompts")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_small(tmp_path_factory.mktemp("tiny")))


def source(model: str, **given: Any) -> NegativeImages:
    engine = {"kind": "diffusers", "model": model, "licence": "other: of the model", "steps": 1, "micro_batch": 2}
    return NegativeImages(kind="negative-images", negatives="prompts", **{"engine": engine, **given})


def made(drawing: NegativeImages, earlier: Earlier, seed: int = 0) -> list[Any]:
    generator = drawing.open(Context("trohn-img", seed=seed, earlier=earlier))
    return list(generator.make(list(generator.plan())))


def test_images_of_a_caption_come_together_and_have_seeds_of_their_own(earlier: Earlier, model: str) -> None:
    first, second, *rejected, last, _ = made(source(model, images_per_caption=2), earlier)
    assert [result.reason for result in rejected] == ["prompt-too-long"] * 2
    assert (first.caption, first.negative_caption) == ("A dog. on grass.", "A tv on grass.")
    assert (first.type, first.subtype) == ("replace", "obj") and first.group == second.group != last.group
    provenance: dict[str, Any] = dict(first.provenance)
    assert (provenance["prompt"], provenance["image"], provenance["number"]) == ("A dog on grass, 4k", "1.jpg", 0)
    assert provenance["seed"] != second.provenance["seed"]
    alone, reseeded = (made(source(model, images_per_caption=1), earlier, seed)[0] for seed in (0, 1))
    assert np.array_equal(alone.image.pixels, first.image.pixels), "more images keep those before"
    assert not np.array_equal(alone.image.pixels, reseeded.image.pixels)


def test_both_sides_are_drawn_from_one_seed(earlier: Earlier, model: str) -> None:
    drawing = source(model, images_per_caption=2, sides=["caption", "negative_caption"], suffix=", 8k")
    original, negative, second = made(drawing, earlier)[:3]
    assert [drawn.provenance["number"] for drawn in (original, negative, second)] == [0, 0, 1]
    assert (original.caption, original.negative_caption) == (negative.negative_caption, negative.caption)
    assert original.provenance["prompt"] == "A tv on grass, 8k" and original.group == negative.group
    assert original.provenance["seed"] == negative.provenance["seed"] != second.provenance["seed"]
