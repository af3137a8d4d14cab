"""Edits of each class of pipelines: the pipeline's own, of the picture's size, and nothing outside of a mask."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.diffusion.conftest import Opens, Saved, published
from tests.models.diffusion.tiny_pipelines import DRAWING, EDITING
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.models.diffusion.classes import PIPELINES, classes
from twinset.models.diffusion.pipeline import OpenPipeline
from twinset.models.image_engine import Drawn
from twinset_extras.edited_photos.diffusers_edits import DiffusersEdits
from twinset_extras.edited_photos.image_editor import Edit
from twinset_extras.edited_photos.pipeline_editor import working_size

OWN: dict[str, dict[str, Any]] = {
    "FluxKontextPipeline": {"_auto_resize": False, "max_area": 64 * 64},
    "QwenImageEditPipeline": {"negative_prompt": " "},
    "QwenImageEditPlusPipeline": {"negative_prompt": " "},
    "QwenImageInpaintPipeline": {"negative_prompt": " ", "strength": 1.0},
    "StableDiffusionXLInpaintPipeline": {"strength": 1.0},
    "StableDiffusion3InpaintPipeline": {"strength": 1.0},
    "FluxInpaintPipeline": {"strength": 1.0},
}
TRIED = [*EDITING, "Flux2KleinPipeline"]
INPAINTING = [name for name in EDITING if "Inpaint" in name or "Fill" in name]


@pytest.fixture(scope="module")
def edits(opens: Opens) -> Opens:
    """As `opens`, by ``diffusers-edit``."""
    return partial(opens, by=DiffusersEdits)


@pytest.fixture(autouse=True)
def _small_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """These classes read every picture at a million pixels."""
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit, pipeline_qwenimage_edit_plus

    for module in (pipeline_qwenimage_edit, pipeline_qwenimage_edit_plus):
        sizes = module.calculate_dimensions
        monkeypatch.setattr(module, "calculate_dimensions", lambda _, ratio, sizes=sizes: sizes(64 * 64, ratio))


def edit(number: int = 0, width: int = 64, height: int = 64, **changed: Any) -> Edit:
    mask = np.zeros((height, width), np.bool_)
    mask[height // 4 : height // 2, width // 4 : -width // 4] = True
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)
    words = {"caption": "a cat", "wanted": "a dog", "phrase": "a red cup", "instruction": "make the cat blue"}
    return Edit(**{"key": f"key-{number}", "pixels": pixels, "mask": mask, "seed": 9 + number, **words, **changed})


def made(results: Any) -> list[Any]:
    found = list(results)
    assert all(isinstance(one, Drawn) for one in found), found
    return [one.pixels for one in found]


def test_every_class_that_edits_is_tried() -> None:
    assert {*classes(editing=True)} == {*TRIED} and len(TRIED) >= 6
    assert {name for name in TRIED if "inpaint" in PIPELINES[name].does} == {*INPAINTING}


@pytest.mark.parametrize("name", TRIED)
def test_an_edit_is_the_pipelines_own_for_the_same_noise(edits: Opens, saved: Saved, name: str) -> None:
    one, pipeline = edit(), published(saved(name), name)
    (pixels,) = made(edits(name, outside="model").edit([one]))
    given: dict[str, Any] = {"image": Image.fromarray(one.pixels), "prompt": one.instruction, "output_type": "np"}
    if name in INPAINTING:
        given |= {"prompt": one.phrase, "mask_image": Image.fromarray(one.mask), "height": 64, "width": 64}
    if "QwenImageEdit" in name or name in ("FluxKontextPipeline", "Flux2KleinPipeline"):
        given |= {"height": 64, "width": 64}
    noise = torch.Generator("cpu").manual_seed(one.seed)
    (image,) = pipeline(generator=noise, num_inference_steps=2, **given, **OWN.get(name, {})).images
    assert np.array_equal(pixels, (image * 255).round().astype(np.uint8)) and pixels.std() > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_an_edit_has_its_pictures_size_and_does_not_hang_on_the_others(edits: Opens, name: str) -> None:
    asked = [edit(0, 50, 70), edit(1, 120, 60), edit(2, 50, 70)]
    engine = edits(name)
    results = made(engine.edit(asked))
    assert [one.shape for one in results] == [(70, 50, 3), (60, 120, 3), (70, 50, 3)]
    for at in (2, 1):
        assert made(engine.edit([asked[at]]))[0].tobytes() == results[at].tobytes()
    if name in INPAINTING:
        for one, result in zip(asked, results, strict=True):
            changed = (one.pixels != result).any(axis=-1)
            assert not changed[~one.mask].any() and changed[one.mask].mean() > 0.9


@pytest.mark.slow
def test_a_text_to_image_model_is_taken_for_inpainting(edits: Opens) -> None:
    for name in DRAWING:
        taken = next((other for other, row in PIPELINES.items() if row.opens == name), None)
        if taken:
            engine = edits(name)
            assert engine.pipeline.found.name == taken and engine.settings.masked
            assert len(made(engine.edit([edit()]))) == 1


def test_the_words_that_an_edit_is_told(edits: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, expected in (("FluxInpaintPipeline", ["a red cup", "a dog"]), ("FluxKontextPipeline", ["clear"] * 2)):
        engine, read = edits(name, fresh=True), list[str]()
        encode = engine.pipeline.pipeline.encode_prompt
        monkeypatch.setattr(
            *(engine.pipeline.pipeline, "encode_prompt"),
            lambda encode=encode, read=read, **given: read.extend(given["prompt"]) or encode(**given),
        )
        made(engine.edit([edit(instruction="clear"), edit(phrase="", instruction="clear")]))
        assert read == expected


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("FluxInpaintPipeline", {"mask": None}, "no-mask"),
        ("FluxInpaintPipeline", {"mask": np.zeros((64, 64), np.bool_)}, "no-mask"),
        ("FluxInpaintPipeline", {"mask": np.ones((64, 32), np.bool_)}, "mask-size"),
        ("FluxInpaintPipeline", {"phrase": "a cat " * 400}, "prompt-too-long"),
        ("FluxKontextPipeline", {"instruction": ""}, "no-instruction"),
        ("QwenImageEditPipeline", {"instruction": "<|image_pad|> a cat"}, "special-token"),
    ],
)
def test_what_cannot_be_edited_is_rejected_alone(edits: Opens, name: str, changed: dict[str, Any], reason: str) -> None:
    engine = edits(name)
    first, rejected, last = engine.edit([edit(), edit(1, **changed), edit(2)])
    assert isinstance(rejected, Rejected) and (rejected.key, rejected.reason) == ("key-1", reason)
    assert reason in engine.settings.meanings and isinstance(first, Drawn) and isinstance(last, Drawn)


def test_a_black_picture_is_rejected(edits: Opens) -> None:
    engine = edits("FluxInpaintPipeline", fresh=True)
    engine.pipeline.pipeline.vae.decoder.conv_out.weight.data.fill_(0)
    engine.pipeline.pipeline.vae.decoder.conv_out.bias.data.fill_(-9)
    assert [one.reason for one in engine.edit([edit()])] == ["blank"]


def test_sizes_that_are_worked_at_keep_the_ratio() -> None:
    assert working_size(640, 480, 1024) == (1184, 896) and working_size(2000, 10, 512) == (1024, 256)
    assert working_size(64, 64, 64) == (64, 64)


@pytest.mark.parametrize("side", [0, -8, 10**9, "64", None])
def test_a_size_that_is_none_is_refused_before_the_model_is_loaded(saved: Saved, tmp_path: Path, side: Any) -> None:
    at = Path(shutil.copytree(saved("StableDiffusionInstructPix2PixPipeline"), tmp_path / "model"))
    config = at / "unet/config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "sample_size": side}))
    settings = DiffusersEdits.model_validate({"kind": "diffusers-edit", "model": str(at), "licence": "mit"})
    with pytest.raises(WrongUse, match=r"engine\.model: .*unet/config\.json: sample_size is .*, no whole number"):
        settings.check_inputs("subsets.twins.source.engine", ["models"])


def test_a_model_that_says_no_size_edits_at_1024_pixels(saved: Saved) -> None:
    given = {"kind": "diffusers-edit", "model": str(saved("ZImageInpaintPipeline")), "licence": "mit"}
    side = OpenPipeline(DiffusersEdits.model_validate(given)).side
    assert side == 1024
