"""Each shortcut against the same UNet without it: equal bits, at SDXL's structure and a tenth of its width."""

import copy
from typing import Any

import pytest
import torch
from diffusers import UNet2DConditionModel
from torch._dynamo.utils import counters

from tests.generators.prompt_to_prompt.tiny_models import WidthsXL, sharpen
from twinset.models.diffusion.text import CaptionAttention, CaptionLayers, FusedSelfAttention, Text

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
