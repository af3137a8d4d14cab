"""SDXL at its real widths on meta tensors: no weights, but all of its numbers and of its work."""

import pytest
import torch
from diffusers import UNet2DConditionModel
from torch.utils.flop_counter import FlopCounterMode

from tests.generators.prompt_to_prompt.tiny_models import REAL_XL
from twinset.models.diffusion.text import CaptionLayers, Text

SIDE = 128  # of the latents of 1024 x 1024 pixels


@pytest.fixture(scope="module")
def unet() -> UNet2DConditionModel:
    with torch.device("meta"):
        return REAL_XL.unet()


def operations(unet: UNet2DConditionModel, rows: int, states: torch.Tensor | None) -> int:
    """Of a forward pass; a multiplication and an addition are two."""
    with torch.device("meta"), torch.inference_mode(), FlopCounterMode(display=False) as counted:
        added = {"text_embeds": torch.empty(rows, 1280), "time_ids": torch.empty(rows, 6)}
        unet(torch.empty(rows, 4, SIDE, SIDE), 1, states, added_cond_kwargs=added)
    return counted.get_total_flops()


@pytest.mark.slow
def test_parameters_and_operations(unet: UNet2DConditionModel) -> None:
    assert sum(one.numel() for one in unet.parameters()) == 2_567_463_684
    assert round(operations(unet, 1, torch.empty(1, 77, 2048, device="meta")) / 1e12, 2) == 6.76


@pytest.mark.slow
def test_a_pass_without_the_cross_attention_of_no_caption(unet: UNet2DConditionModel) -> None:
    states = torch.empty(1, 77, 2048, device="meta")
    row = operations(unet, 1, states)
    with torch.inference_mode():
        CaptionLayers(unet).remember([Text(states, None)], [0], 1)
    assert 0.04 < 1 - operations(unet, 2, None) / (2 * row) < 0.05
    with torch.device("meta"), torch.inference_mode(), FlopCounterMode(display=False) as decoding:
        REAL_XL.autoencoder().decode(torch.empty(1, 4, SIDE, SIDE))
    assert round((100 * row + decoding.get_total_flops()) / 1e12, 1) == 686.6
