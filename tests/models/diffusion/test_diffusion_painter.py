"""Images as they come out of the engine, with tiny models of random weights.

Each shortcut against the same UNet without it: equal bits, at SDXL's structure and a tenth of its width.
"""

import copy
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionPipeline, StableDiffusionXLPipeline, UNet2DConditionModel
from PIL import Image
from torch._dynamo.utils import counters

from tests.models.diffusion.conftest import Painter, requests, watched
from tests.models.diffusion.tiny_models import WidthsXL, sharpen
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.contracts.parts import OutOfMemory
from twinset.models.diffusion.text import CaptionAttention, CaptionLayers, FusedSelfAttention, Text
from twinset.models.image_engine import Drawn

CAT, DOG, RED = "a photo of a cat", "a dog in the winter", "a red circle"
ROUNDED = 1  # grey level of 255: batches of other sizes, and other layouts in memory, sum in another order


def pixels(drawn: Any) -> list[Pixels]:
    made = list(drawn)
    assert all(isinstance(one, Drawn) for one in made)
    return [one.pixels for one in made]


def apart(ones: list[Pixels], others: list[Pixels]) -> int:
    return max(int(np.abs(one.astype(int) - other).max()) for one, other in zip(ones, others, strict=True))


@pytest.mark.parametrize("kind", ["sdxl", "small", pytest.param("stable-diffusion-1.4", marks=pytest.mark.slow)])
def test_images_are_those_of_the_published_pipeline(painter: Painter, saved: Callable[[str], Path], kind: str) -> None:
    engine = painter(kind, guidance=5.0)
    asked = requests(CAT, CAT)
    drawn = pixels(engine.draw(asked))
    published: Any = {"sdxl": StableDiffusionXLPipeline}.get(kind, StableDiffusionPipeline)
    pipeline = published.from_pretrained(saved(kind), variant="fp16" if kind == "sdxl" else None)
    pipeline.to(torch.float32).set_progress_bar_config(disable=True)
    noise = torch.from_numpy(np.stack([engine._noise(one) for one in asked]))
    options: dict[str, Any] = {"num_images_per_prompt": 2, "num_inference_steps": 2, "guidance_scale": 5.0}
    images = pipeline(CAT, height=64, width=64, latents=noise, output_type="np", **options).images
    assert apart(drawn, list((images * 255).round().astype(np.uint8))) <= ROUNDED
    assert np.std(drawn) > 20 and not np.array_equal(*drawn)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sdxl", "small"])
def test_an_image_depends_on_its_seed_and_not_on_the_others(painter: Painter, kind: str) -> None:
    """Bit for bit while passes have one size, since a short one is filled up; nearly so where memory ran out."""
    engine = painter(kind, micro_batch=3)
    asked = requests(CAT, DOG, DOG, RED)
    drawn = pixels(engine.draw(asked))
    assert drawn[1].tobytes() != drawn[2].tobytes()
    for some in (asked[1:], asked[3:], asked[::-1]):
        again = dict(zip(some, pixels(engine.draw(some)), strict=True))
        assert all(again[one].tobytes() == drawn[asked.index(one)].tobytes() for one in some)
    smaller = engine.with_micro_batch(1)
    assert apart(pixels(smaller.draw(asked)), drawn) <= ROUNDED and engine.micro_batch == 3


def test_without_guidance_there_are_no_unconditional_rows(painter: Painter) -> None:
    for guidance, rows in ((1.0, 2), (5.0, 4)):
        engine = painter(guidance=guidance)
        with watched(engine._model._denoiser._unet) as seen:
            assert len(pixels(engine.draw(requests(CAT, DOG)))) == 2 and seen == [rows, rows]


def test_text_is_encoded_once_for_all_images_of_a_prompt(painter: Painter) -> None:
    engine = painter("sdxl", micro_batch=2)
    with watched(*(encoder for _, encoder in engine._model._parts.encoders)) as calls:
        pixels(engine.draw(requests(CAT, CAT, CAT, CAT)))
    assert calls == [1, 1]  # of one prompt, by each of the two encoders


def test_the_next_pass_is_denoised_while_the_last_one_is_decoded(painter: Painter) -> None:
    engine = painter(fresh=True, micro_batch=1)
    loaded = engine._model
    begun, denoise, decode = [threading.Event() for _ in range(3)], loaded.denoise, loaded.decode
    calls = {"denoise": 0, "decode": 0}

    def counted_denoise(*given: Any) -> Any:
        begun[calls["denoise"]].set()
        calls["denoise"] += 1
        return denoise(*given)

    def patient_decode(*given: Any) -> Any:
        calls["decode"] += 1
        if calls["decode"] < 3:
            assert begun[calls["decode"]].wait(), "the next pass waits for decoding"
        return decode(*given)

    loaded.denoise, loaded.decode = counted_denoise, patient_decode  # type: ignore[method-assign]
    assert len(pixels(engine.draw(requests(CAT, DOG, RED)))) == 3 and calls == {"denoise": 3, "decode": 3}


def test_who_stops_asking_does_not_wait_for_the_next_pass(painter: Painter) -> None:
    engine = painter(micro_batch=1, steps=20)
    with watched(engine._model._denoiser._unet) as steps:
        drawn = engine.draw(requests(CAT, DOG))
        next(drawn)
        drawn.close()  # type: ignore[attr-defined]
    assert 20 <= len(steps) < 40


def test_images_are_resized_by_the_named_filter(painter: Painter) -> None:
    whole = pixels(painter().draw(requests(CAT)))[0]
    for name in ("bicubic", "box"):
        (made,) = painter(output_resolution=32, resampling=name).draw(requests(CAT))
        expected = Image.fromarray(whole).resize((32, 32), Image.Resampling[name.upper()])
        assert np.array_equal(made.pixels, np.asarray(expected))
        assert made.provenance["resampling"] == name and made.provenance["resolution"] == 64


def test_a_prompt_that_is_too_long_is_rejected_or_cut(painter: Painter) -> None:
    long = "a photo of a cat " * 30 + "in the winter"
    first, rejected, last = painter().draw(requests(CAT, long, DOG))
    assert isinstance(rejected, Rejected) and rejected.reason == "prompt-too-long" and rejected.key == "key-1"
    assert rejected.detail == "78 tokens more than the model reads"
    assert isinstance(first, Drawn) and isinstance(last, Drawn) and last.key == "key-2"
    (cut,) = painter(cut=True).draw(requests(long))
    assert isinstance(cut, Drawn) and cut.provenance["tokens_cut"] == 78 and first.provenance["tokens_cut"] == 0


def test_what_is_plainly_broken_is_rejected(painter: Painter) -> None:
    engine = painter(fresh=True)
    engine._model._denoiser._unet.conv_out.bias.data.fill_(torch.nan)
    assert [one.reason for one in engine.draw(requests(CAT, DOG)) if isinstance(one, Rejected)] == ["not-finite"] * 2
    engine = painter(fresh=True)
    engine._model._parts.vae.decoder.layers[-1].weight.data.fill_(0)
    assert [one.reason for one in engine.draw(requests(CAT)) if isinstance(one, Rejected)] == ["blank"]


@pytest.mark.parametrize("what", ["denoise", "decode", "encode"])
def test_memory_that_runs_out_is_told_from_other_trouble(painter: Painter, what: str) -> None:
    engine = painter(fresh=True)

    def full(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    setattr(engine._model, what, full)
    with pytest.raises(OutOfMemory, match="Tried to allocate"):
        list(engine.draw(requests(CAT, DOG, RED)))


def test_one_image_is_decoded_at_a_time(painter: Painter) -> None:
    engine = painter("sdxl", micro_batch=3)
    with watched(engine._model._parts.vae.decoder) as rows:
        assert len(pixels(engine.draw(requests(CAT, DOG, RED)))) == 3 and rows == [1, 1, 1]


@pytest.mark.parametrize("scheduler", ["euler", "ddim", "dpm-solver++", "pndm"])
def test_no_sampler_draws_noise_of_its_own(painter: Painter, scheduler: str) -> None:
    engine = painter(scheduler=scheduler, steps=3)
    engine._model.encode(CAT)  # loading may set what it later reads from files at random
    state = torch.get_rng_state()
    first, again = (pixels(engine.draw(requests(CAT)))[0] for _ in range(2))
    assert first.tobytes() == again.tobytes() and torch.equal(torch.get_rng_state(), state)


def test_settings_that_do_not_fit_the_model_or_machine_are_said(
    painter: Painter, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(saved("small"), tmp_path / "model")
    file = folder / "scheduler/scheduler_config.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "num_train_timesteps": 100}))
    with pytest.raises(WrongUse, match=r"engine.steps must be at most 100 for"):
        list(painter(model=str(folder), steps=101).draw(requests(CAT)))
    half = painter(precision="bfloat16")
    assert pixels(half.draw(requests(CAT)))[0].any() and half._model.precision == "bfloat16"
    assert painter().device() == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(WrongUse, match=r"source.engine.device is gpu, but torch finds no CUDA device here"):
            painter(device="gpu").device()


N = 2  # images: as many unconditional rows come before theirs


class Pass:
    """A step of N images, and what diffusers' own UNet predicts for it."""

    def __init__(self, dtype: torch.dtype) -> None:
        torch.manual_seed(3)
        self.unet = sharpen(WidthsXL().unet()).eval().to(dtype)
        self.texts = [Text(torch.randn(1, 77, 96, dtype=dtype), torch.randn(1, 40, dtype=dtype)) for _ in range(N)]
        self.rows = torch.randn(2 * N, 4, 16, 16).to(dtype)
        self.states = torch.cat([torch.zeros(N, 77, 96, dtype=dtype), *(one.states for one in self.texts)])
        pooled = torch.cat(
            [torch.zeros(N, 40, dtype=dtype), *(one.pooled for one in self.texts if one.pooled is not None)]
        )
        ids = torch.tensor([[128, 128, 0, 0, 128, 128]], dtype=dtype).expand(2 * N, -1)
        self.added = {"text_embeds": pooled, "time_ids": ids}
        self.expected = self.predict(self.unet, self.states)

    @torch.inference_mode()
    def predict(self, unet: UNet2DConditionModel, states: torch.Tensor | None = None) -> torch.Tensor:
        predicted: torch.Tensor = unet(self.rows, 500, states, added_cond_kwargs=self.added).sample
        return predicted

    def changed(self, **processors: Any) -> UNet2DConditionModel:
        """The UNet with a new processor for each layer of a name."""
        unet = copy.deepcopy(self.unet)
        own = dict(unet.attn_processors)
        for name in own:
            layer = name.split(".")[-2]
            own[name] = processors[layer]() if layer in processors else own[name]
        unet.set_attn_processor(own)
        return unet


@pytest.fixture(scope="module", params=[torch.float32, pytest.param(torch.bfloat16, marks=pytest.mark.slow)], ids=str)
def step(request: pytest.FixtureRequest) -> Pass:
    return Pass(request.param)


def test_an_embedding_of_zeros_gives_the_output_bias(step: Pass) -> None:
    layers = [layer for name, layer in step.unet.named_modules() if name.endswith(".attn2")]
    assert len(layers) == 70
    for layer in (layers[0], layers[-1]):
        channels = layer.to_q.in_features
        hidden = torch.randn(N, 9, channels, dtype=step.rows.dtype)
        with torch.inference_mode():
            out = layer(hidden, encoder_hidden_states=step.states[:N])
        assert torch.equal(out, layer.to_out[0].bias.expand_as(out)) and layer.to_out[0].bias.any()


def test_fused_projections_give_equal_bits(step: Pass) -> None:
    unet = step.changed(attn1=FusedSelfAttention)
    for name, layer in unet.named_modules():
        if name.endswith(".attn1"):
            layer.fuse_projections()
    assert torch.equal(step.predict(unet, step.states), step.expected)


def test_remembered_keys_and_values_give_equal_bits(step: Pass) -> None:
    unet = step.changed(attn2=CaptionAttention)
    layers = CaptionLayers.__new__(CaptionLayers)
    layers._layers = [(one, one.processor) for name, one in unet.named_modules() if name.endswith(".attn2")]
    zeros = Text(torch.zeros_like(step.texts[0].states), None)
    with torch.inference_mode():
        layers.remember([*step.texts, zeros], [2, 2, 0, 1], 0)
    assert torch.equal(step.predict(unet), step.expected)


def test_all_shortcuts_together_give_equal_bits_step_after_step(step: Pass) -> None:
    unet = copy.deepcopy(step.unet)
    layers = CaptionLayers(unet)
    assert layers.skip_zeros
    with torch.inference_mode():
        layers.remember(step.texts, [0, 1], N)
    for _ in range(2):
        assert torch.equal(step.predict(unet), step.expected)
    with torch.inference_mode():  # another batch: one caption, drawn twice
        layers.remember(step.texts[:1], [0, 0], N)
    again = step.predict(unet)
    assert torch.equal(again[N], step.expected[N]) and not torch.equal(again[N + 1], step.expected[N + 1])


@pytest.mark.slow
def test_blocks_compile_whole_and_for_all_layers_at_once() -> None:
    step = Pass(torch.float32)
    layers = CaptionLayers(step.unet)
    step.unet.compile_repeated_blocks(fullgraph=True, backend="eager")
    counters.clear()
    for texts in (step.texts, step.texts[::-1]):
        with torch.inference_mode():
            layers.remember(texts, [0, 1], N)
        predicted = step.predict(step.unet)
    assert not counters["graph_break"] and counters["stats"]["unique_graphs"] == 2  # one for each width
    with torch.inference_mode():
        layers.remember(step.texts, [0, 1], N)
    assert torch.equal(step.predict(step.unet), step.expected) and not torch.equal(predicted, step.expected)
