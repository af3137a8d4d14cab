"""The whole path, from a saved folder to images, on Stable Diffusion 1.4's and SDXL's structure and a small model's."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionPipeline, StableDiffusionXLPipeline
from numpy.typing import NDArray

from tests.generators.prompt_to_prompt.conftest import SAVED, Load
from twinset.generators.prompt_to_prompt.edits import Edit, EditError
from twinset.generators.prompt_to_prompt.pipeline import PromptToPrompt

LATENT = {"stable-diffusion-1.4": 8, "sdxl": 8, "small": 16}
EDITS = [
    Edit(("a photo of a cat", "a photo of a dog")),
    Edit(("a cat", "a red cat in the winter"), cross_replace_steps=0.5),
    Edit(("a squirrel eating soup", "a lion eating soup"), 1.0, 0.5),
]
PLAIN = [Edit(edit.captions, 0.0, 0.0) for edit in EDITS]  # two independent images
ROUNDED = 2  # grey levels of 255: another batch, and on AVX2 another row of one, sums in another order
REAL = ("stable-diffusion-1.4", "sdxl")  # the real structures take long


def noise(kind: str, pairs: int) -> torch.Tensor:
    shape = (pairs, 4, LATENT[kind], LATENT[kind])
    return torch.from_numpy(np.random.default_rng(7).standard_normal(shape, dtype=np.float32))


def draw(pipeline: PromptToPrompt, edits: list[Edit], of: torch.Tensor) -> NDArray[np.uint8]:
    """Pairs as an array, (n, 2, height, width, 3)."""
    pairs = pipeline([pipeline.align(edit) for edit in edits], of)
    return np.array([pair.images for pair in pairs])


def difference(images: NDArray[np.uint8], others: NDArray[np.uint8]) -> int:
    return int(np.abs(images.astype(int) - others).max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAVED)
def test_without_replacement_a_pair_is_two_independent_images(
    load: Load, saved: Callable[[str], Path], kind: str
) -> None:
    """... which diffusers' own pipelines draw from the same noise, caption by caption."""
    made = draw(load(kind), PLAIN, noise(kind, 3))
    if kind == "sdxl":
        pipeline = StableDiffusionXLPipeline.from_pretrained(saved(kind), variant="fp16", add_watermarker=False)
    else:
        pipeline = StableDiffusionPipeline.from_pretrained(saved(kind), safety_checker=None).to(torch.float32)
    pipeline.scheduler = load(kind).opened.pipeline.scheduler
    pipeline.set_progress_bar_config(disable=True)
    for n, edit in enumerate(EDITS):
        for side in (0, 1):
            size = {"height": made.shape[2], "width": made.shape[3]}
            latents = noise(kind, 3)[n : n + 1]
            drawn = pipeline(edit.captions[side], num_inference_steps=4, guidance_scale=5.0, latents=latents, **size)
            assert difference(np.asarray(drawn.images[0]), made[n, side]) <= ROUNDED
    assert difference(made[:, 0], made[:, 1]) > 5 * ROUNDED


@pytest.mark.parametrize("kind", ["small", *(pytest.param(kind, marks=pytest.mark.slow) for kind in REAL)])
def test_an_edit_changes_the_edited_image_alone(load: Load, kind: str) -> None:
    plain = draw(load(kind), PLAIN, noise(kind, 3))
    edited = draw(load(kind), EDITS, noise(kind, 3))
    assert difference(plain[:, 0], edited[:, 0]) <= ROUNDED
    for n in range(3):
        assert difference(plain[n, 1], edited[n, 1]) > ROUNDED


@pytest.mark.gpu
@pytest.mark.parametrize("kind", SAVED)
def test_half_precision(load: Load, kind: str) -> None:
    pipeline = load(kind, device="gpu", precision="float16")
    made, again = (draw(pipeline, EDITS, noise(kind, 3)) for _ in range(2))
    assert made.tobytes() == again.tobytes()
    exact = draw(load(kind), EDITS, noise(kind, 3))
    assert np.abs(made.astype(int) - exact).mean() < ROUNDED


def test_a_pair_that_is_not_a_number_is_reported_and_spoils_no_other(load: Load) -> None:
    spoilt = noise("small", 3)
    spoilt[1, 0, 0, 0] = torch.nan
    pipeline = load("small")
    made = pipeline([pipeline.align(edit) for edit in EDITS], spoilt)
    good = draw(pipeline, EDITS, noise("small", 3))
    assert [pair.finite for pair in made] == [True, False, True]
    for n in (0, 2):
        assert difference(np.array(made[n].images), good[n]) <= ROUNDED


def test_the_unet_keeps_its_own_processors_and_the_scheduler_its_state(load: Load) -> None:
    pipeline = load("small")
    unet = pipeline.opened.denoiser
    own = {name: id(processor) for name, processor in unet.attn_processors.items()}
    state = torch.get_rng_state()
    draw(pipeline, EDITS, noise("small", 3))
    with pytest.raises(EditError, match="tokens, the model reads 77"):
        draw(pipeline, [Edit(("a cat", "cat " * 80))], noise("small", 1))
    with pytest.raises(EditError, match=r"holds <\|endoftext\|>"):
        pipeline.align(Edit(("a red <|endoftext|> cube", "a red <|endoftext|> sphere")))
    assert {name: id(processor) for name, processor in unet.attn_processors.items()} == own
    assert torch.equal(torch.get_rng_state(), state)
