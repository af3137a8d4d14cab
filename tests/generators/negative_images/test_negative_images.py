"""Images of negative captions: what is planned from a table, and what an engine makes of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.finished_stage import finish, finished
from tests.models.diffusion.tiny_models import save_small
from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.markdown import card_block
from twinset.generators.negative_captions.prompts import NegativePrompts
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.generators.negative_images import NegativeImages
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage

NEGATIVES = {
    "0": {"filename": "1.jpg", "caption": "A cat on grass.", "negative_caption": "A dog on grass."},
    "1": {"filename": "2.jpg", "caption": "a red circle", "negative_caption": "a " + "very " * 70 + "red square"},
    "2": {"filename": "3.jpg", "caption": "A lion in the winter.", "negative_caption": "A squirrel in the winter."},
}
Earlier = Callable[[str], FinishedStage]


def prompts(folder: Path, negatives: Any, suffix: str = "") -> Earlier:
    """The finished stage ``prompts`` of some negatives."""
    (folder / "replace_obj.json").write_text(json.dumps(negatives))
    finish(ReplayedNegatives(kind="replayed-negatives", captions=(folder / "replace_obj.json",)), folder, "negatives")
    source = NegativePrompts(kind="negative-prompts", negatives="negatives", suffix=suffix)
    finish(source, folder, "prompts", context=Context("prompts", earlier=finished(folder, "negatives")))
    return finished(folder, "prompts")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    return prompts(tmp_path_factory.mktemp("out"), NEGATIVES, ", 4k")


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
    one, other, *rejected, last, _ = made(source(model, images_per_caption=2), earlier)
    assert [each.reason for each in rejected if isinstance(each, Rejected)] == ["prompt-too-long"] * 2
    assert (one.caption, one.negative_caption) == ("A dog on grass.", "A cat on grass.")
    assert (one.type, one.subtype) == ("replace", "obj") and one.group == other.group != last.group
    about: dict[str, Any] = dict(one.provenance)
    assert (about["prompt"], about["image"], about["number"]) == ("A dog on grass, 4k", "1.jpg", 0)
    assert about["engine"]["steps"] == 1 and about["seed"] != other.provenance["seed"]
    assert one.image.source.path == "unet/diffusion_pytorch_model.safetensors" and one.sources
    canonical_json(about)

    def pixels(count: int, seed: int) -> set[tuple[str, bytes]]:
        results = made(source(model, images_per_caption=count), earlier, seed)
        return {(drawn.key, drawn.image.pixels.tobytes()) for drawn in results if not isinstance(drawn, Rejected)}

    few, many, others = pixels(1, 0), pixels(3, 0), pixels(1, 1)
    assert len(few) == 2 and len(many) == 6 and few <= many and not few & others, "another seed keeps none"


def test_both_sides_are_drawn_from_one_seed(earlier: Earlier, model: str) -> None:
    drawing = source(model, images_per_caption=2, sides=["caption", "negative_caption"], suffix=", 8k")
    original, negative, other = made(drawing, earlier)[:3]
    assert [one.provenance["number"] for one in (original, negative, other)] == [0, 0, 1]
    assert (original.caption, original.negative_caption) == (negative.negative_caption, negative.caption)
    assert original.provenance["prompt"] == "A cat on grass, 8k" and original.group == negative.group
    assert original.provenance["seed"] == negative.provenance["seed"] != other.provenance["seed"]


def test_the_small_model_draws_what_it_knows(tmp_path: Path) -> None:
    known = {"0": {"filename": "", "caption": "A photo of a blue box.", "negative_caption": "A photo of a red ball."}}
    drawing = source("small", engine={"kind": "diffusers", "model": "small", "micro_batch": 1})
    assert "CC0" in drawing.terms.licence
    (one,) = made(drawing, prompts(tmp_path, known))
    centre = np.asarray(Image.fromarray(one.image.pixels).crop((28, 30, 36, 38)), np.int16).mean((0, 1))
    assert centre[0] > 150 and centre[1] < 110 and centre[2] < 110, "the middle of the picture is red"


def test_settings_are_those_of_the_engine(earlier: Earlier, model: str) -> None:
    opened = source(model).open(Context("trohn-img", earlier=earlier))
    assert opened.weights().keys() == {"engine", "model"} and opened.with_micro_batch(1).batch_size() == 1
    assert (
        "steps 1" in card_block(source(model), "notes") and "rombach2022high" in source(model).engine.reference.bibtex
    )
    chosen = source(model, engine={"kind": "diffusers", "model": "small", "device": "gpu"})
    assert (chosen.pool, chosen.shards_at_a_time) == ("gpu", 1) and source(model).pool == "cpu"
    assert source(model).terms.licence == "other: of the model" and source(model, licence="MIT").terms.licence == "MIT"
    with pytest.raises(WrongUse, match=r"s.engine.model: there is no model folder /nowhere"):
        source("/nowhere").check_inputs("s", ("models",))
