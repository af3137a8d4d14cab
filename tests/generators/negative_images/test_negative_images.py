"""Images of negative captions: what is planned from a table, and what an engine makes of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.generators.finished_stage import finish, finished
from tests.generators.prompt_to_prompt.tiny_models import save_small
from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.kinds.text_pair import TextPair
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


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FinishedStage]:
    """The finished stage ``prompts``."""
    folder = tmp_path_factory.mktemp("out")
    (folder / "replace_obj.json").write_text(json.dumps(NEGATIVES))
    replayed = ReplayedNegatives(kind="replayed-negatives", captions=(folder / "replace_obj.json",))
    finish(replayed, folder, "negatives")
    source = NegativePrompts(kind="negative-prompts", negatives="negatives", suffix=", 4k")
    finish(source, folder, "prompts", context=Context("prompts", earlier=finished(folder, "negatives")))
    return finished(folder, "prompts")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_small(tmp_path_factory.mktemp("tiny")))


def source(model: str, **given: Any) -> NegativeImages:
    engine = {"kind": "diffusion", "model": model, "licence": "other: of the model", "steps": 1, "micro_batch": 2}
    return NegativeImages(kind="negative-images", negatives="prompts", **{"engine": engine, **given})


def test_images_of_a_caption_come_together_and_have_seeds_of_their_own(
    earlier: Callable[[str], FinishedStage], model: str
) -> None:
    generator = source(model, images_per_caption=2).open(Context("trohn-img", earlier=earlier))
    planned = list(generator.plan())
    assert [one.number for one in planned] == [0, 1] * 3 and len({one.group for one in planned}) == 3
    one, other, *rejected, last, _ = list(generator.make(planned))
    assert isinstance(one, TextPair) and isinstance(other, TextPair) and isinstance(last, TextPair)
    assert [type(each) for each in rejected] == [Rejected] * 2
    assert {each.reason for each in rejected if isinstance(each, Rejected)} == {"prompt-too-long"}
    assert (one.caption, one.negative_caption) == ("A dog on grass.", "A cat on grass.")
    assert (one.type, one.subtype) == ("replace", "obj")
    about: dict[str, Any] = dict(one.provenance)
    assert (about["prompt"], about["image"], about["number"]) == ("A dog on grass, 4k", "1.jpg", 0)
    assert about["engine"]["steps"] == 1 and about["type"] == "replace"
    assert {"caption_id", "image_id", "subtype", "seed"} <= about.keys()
    assert about["seed"] != other.provenance["seed"]
    assert one.image is not None and other.image is not None
    assert not np.array_equal(one.image.pixels, other.image.pixels)
    assert one.image.source.path == "unet/diffusion_pytorch_model.safetensors" and one.sources
    canonical_json(about)


def test_more_images_of_a_caption_keep_the_first_ones(earlier: Callable[[str], FinishedStage], model: str) -> None:
    def made(count: int, seed: int = 0) -> dict[str, bytes]:
        generator = source(model, images_per_caption=count).open(Context("trohn-img", seed=seed, earlier=earlier))
        results = generator.make(list(generator.plan()))
        return {one.key: one.image.pixels.tobytes() for one in results if isinstance(one, TextPair) and one.image}

    one, three = made(1), made(3)
    assert len(one) == 2 and len(three) == 6 and one.items() <= three.items()
    assert not one.items() & made(1, seed=1).items()


def test_both_sides_are_drawn_from_one_seed(earlier: Callable[[str], FinishedStage], model: str) -> None:
    drawing = source(model, images_per_caption=2, sides=["caption", "negative_caption"], suffix=", 8k")
    generator = drawing.open(Context("twins", earlier=earlier))
    planned = list(generator.plan())[:3]
    assert [(one.side, one.number) for one in planned] == [
        ("caption", 0),
        ("negative_caption", 0),
        ("negative_caption", 1),
    ]
    original, negative, other = generator.make(planned)
    assert isinstance(original, TextPair) and isinstance(negative, TextPair) and isinstance(other, TextPair)
    assert (original.caption, original.negative_caption) == (negative.negative_caption, negative.caption)
    assert original.provenance["prompt"] == "A cat on grass, 8k" and original.group == negative.group
    assert original.provenance["seed"] == negative.provenance["seed"] != other.provenance["seed"]


def test_a_side_is_named_once(model: str) -> None:
    with pytest.raises(ValueError, match=r"sides: .* stands twice"):
        source(model, sides=["caption", "caption"])


def test_the_small_model_draws_what_it_knows(tmp_path: Path) -> None:
    records = {"0": {"filename": "", "caption": "A photo of a blue box.", "negative_caption": "A photo of a red ball."}}
    (tmp_path / "replace_att.json").write_text(json.dumps(records))
    finish(ReplayedNegatives(kind="replayed-negatives", captions=(tmp_path,)), tmp_path, "negatives")
    prompts = NegativePrompts(kind="negative-prompts", negatives="negatives", suffix="")
    finish(prompts, tmp_path, "prompts", context=Context("prompts", earlier=finished(tmp_path, "negatives")))
    engine = {"kind": "diffusion", "model": "small", "micro_batch": 1}
    drawing = NegativeImages(kind="negative-images", negatives="prompts", engine=engine)  # type: ignore[arg-type]
    assert "CC0" in drawing.licence
    generator = drawing.open(Context("trohn-img", earlier=finished(tmp_path, "prompts")))
    (made,) = generator.make(list(generator.plan()))
    assert isinstance(made, TextPair) and made.image is not None
    centre = np.asarray(Image.fromarray(made.image.pixels).crop((28, 30, 36, 38)), np.int16).mean((0, 1))
    assert centre[0] > 150 and centre[1] < 110 and centre[2] < 110, "the middle of the picture is red"


def test_engine_version_and_weights_decide_the_bytes(earlier: Callable[[str], FinishedStage], model: str) -> None:
    generator = source(model).open(Context("trohn-img", earlier=earlier))
    assert isinstance(generator, NegativeImages) and generator.isolation == "process"
    first = generator.weights()
    assert first.keys() == {"engine", "model"} and generator.runs_on() == "cpu"
    type(generator.worker).version += 1
    try:
        assert generator.weights()["engine"] != first["engine"]
    finally:
        type(generator.worker).version -= 1
    halved = generator.with_micro_batch(1)
    assert (halved.batch_size(), halved.worker.micro_batch, generator.worker.micro_batch) == (1, 1, 2)


def test_settings_are_those_of_the_engine(model: str) -> None:
    chosen = source(model, engine={"kind": "diffusion", "model": "small", "device": "gpu"})
    assert (chosen.pool, chosen.shards_at_a_time) == ("gpu", 1) and source(model).pool == "cpu"
    assert source(model).licence == "other: of the model" and source(model, licence="MIT").licence == "MIT"
    assert "steps is 1" in source(model).notes() and "rombach2022high" in source(model).engine.reference.bibtex
    with pytest.raises(WrongUse, match=r"s.engine.model: there is no model folder /nowhere"):
        source("/nowhere").check_inputs("s", ("models",))
    with pytest.raises(ValueError, match="licence"):
        source("owner/unknown", engine={"kind": "diffusion", "model": "owner/unknown"})
