"""Edits of each class of pipelines: the pipeline's own, of the picture's size, and nothing outside of a mask."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.models.diffusion.conftest import Opens, Saved, published
from tests.models.diffusion.tiny_pipelines import EDITING
from twinset.contracts.kinds.samples import Rejected
from twinset.models.diffusion.classes import PIPELINES, classes
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
QUICK = ("FluxKontextPipeline", "FluxInpaintPipeline", "QwenImageEditPipeline")
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
    drawn = list(results)
    assert all(isinstance(image, Drawn) for image in drawn), drawn
    return [image.pixels for image in drawn]


def test_every_class_that_edits_is_tried() -> None:
    assert {*classes(editing=True)} == {*TRIED} and len(TRIED) >= 6
    assert {name for name in TRIED if "inpaint" in PIPELINES[name].does} == {*INPAINTING}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in TRIED]
)
def test_an_edit_is_the_pipelines_own_for_the_same_noise(edits: Opens, saved: Saved, name: str) -> None:
    asked, pipeline = edit(), published(saved(name), name)
    (pixels,) = made(edits(name, outside="model").edit([asked]))
    given: dict[str, Any] = {"image": Image.fromarray(asked.pixels), "prompt": asked.instruction, "output_type": "np"}
    if name in INPAINTING:
        given |= {"prompt": asked.phrase, "mask_image": Image.fromarray(asked.mask), "height": 64, "width": 64}
    if "QwenImageEdit" in name or name in ("FluxKontextPipeline", "Flux2KleinPipeline"):
        given |= {"height": 64, "width": 64}
    noise = torch.Generator("cpu").manual_seed(asked.seed)
    (image,) = pipeline(generator=noise, num_inference_steps=2, **given, **OWN.get(name, {})).images
    assert np.array_equal(pixels, (image * 255).round().astype(np.uint8)) and pixels.std() > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIED)
def test_an_edit_has_its_pictures_size_and_does_not_hang_on_the_others(edits: Opens, name: str) -> None:
    asked = [edit(0, 50, 70), edit(1, 120, 60), edit(2, 50, 70)]
    engine = edits(name)
    results = made(engine.edit(asked))
    assert [result.shape for result in results] == [(70, 50, 3), (60, 120, 3), (70, 50, 3)]
    for at in (2, 1):
        assert made(engine.edit([asked[at]]))[0].tobytes() == results[at].tobytes()
    if name in INPAINTING:
        for request, result in zip(asked, results, strict=True):
            changed = (request.pixels != result).any(axis=-1)
            assert not changed[~request.mask].any() and changed[request.mask].mean() > 0.9


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("FluxInpaintPipeline", {"mask": None}, "no-mask"),
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


def test_sizes_that_are_worked_at_keep_the_ratio() -> None:
    assert working_size(640, 480, 1024) == (1184, 896) and working_size(2000, 10, 512) == (1024, 256)
    assert working_size(64, 64, 64) == (64, 64)
