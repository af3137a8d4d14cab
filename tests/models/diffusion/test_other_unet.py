"""A model whose UNet comes from elsewhere, in the layout that SDXL and the DPO UNet are published in.

SDXL at its real widths on meta tensors: no weights, but all of its numbers and of its work.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import EulerAncestralDiscreteScheduler, UNet2DConditionModel
from torch.utils.flop_counter import FlopCounterMode

from tests.models.diffusion.conftest import Painter, requests
from tests.models.diffusion.tiny_models import REAL_XL, WidthsXL, unet_14, unet_xl
from twinset.contracts.errors import WrongUse
from twinset.models.diffusion.model_files import unet_folder, used_files
from twinset.models.diffusion.models import load_parts
from twinset.models.diffusion.settings import DPO, SDXL, DiffusionImages
from twinset.models.diffusion.text import CaptionLayers, Text
from twinset.models.image_engine import Drawn

NARROW = WidthsXL((16, 16, 16), (2, 2, 2))


@pytest.fixture(scope="module")
def base(saved: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SDXL without a UNet."""
    folder = tmp_path_factory.mktemp("base") / "model"
    shutil.copytree(saved("sdxl"), folder, ignore=shutil.ignore_patterns("unet"))
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the DPO UNet is published: in a folder of its own within its repository."""
    folder = tmp_path_factory.mktemp("dpo")
    NARROW.unet().save_pretrained(folder / "unet")
    return folder


def settings(base: Path, **given: Any) -> DiffusionImages:
    return DiffusionImages(kind="diffusion", model=str(base), licence="MIT", resolution=64, steps=1, **given)


def test_the_other_unet_draws_and_is_part_of_the_digest(base: Path, other: Path, painter: Painter) -> None:
    chosen = settings(base, unet=str(other), micro_batch=1)
    chosen.check_inputs("source.engine", ("models",))
    engine = chosen.open()
    (drawn,) = engine.draw(requests("a cat"))
    assert isinstance(drawn, Drawn) and drawn.sources[0].path == "unet/diffusion_pytorch_model.safetensors"
    assert (drawn.provenance["model"], drawn.provenance["unet"]) == ("a folder", "a folder")
    files = used_files(str(base), str(other))
    assert files["unet/config.json"] == other / "unet/config.json" and files["vae/config.json"].is_relative_to(base)
    digest = engine.weights()["model"]
    assert digest == settings(base, unet=str(other / "unet")).open().weights()["model"]
    assert digest != painter("sdxl").weights()["model"]


def test_what_is_missing_is_named_with_its_setting(base: Path, other: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=rf"^e.model: the model {base} lacks unet/config.json, unet/diffusion_pytorch_m"):
        settings(base).check_inputs("e", ("models",))
    (tmp_path / "unet").mkdir()
    shutil.copy(other / "unet/config.json", tmp_path / "unet")
    problem = rf"^e.unet: the UNet {tmp_path} lacks diffusion_pytorch_model.safetensors: put them into {tmp_path}/unet"
    with pytest.raises(WrongUse, match=problem):
        settings(base, unet=str(tmp_path)).check_inputs("e", ("models",))
    with pytest.raises(WrongUse, match=r"e.unet: .*neither a folder here nor in the Hugging Face cache"):
        settings(base, unet=DPO).check_inputs("e", ("models",))
    settings(base).check_inputs("e", ("annotations",))
    assert unet_folder(str(other)) == other / "unet"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: unet_14((32, 32, 32, 32), 48), "text encoders give 96 channels, the UNet reads 48"),
        (
            lambda: unet_14((32, 32, 32, 32), 96),
            "unet: reads pooled captions of 0 channels, the text encoders of .* give 40",
        ),
        (
            lambda: unet_xl((16, 16, 16), (2, 2, 2), 96, pooled=64),
            "unet: reads pooled captions of 64 channels, .* give 40",
        ),
    ],
)
def test_a_unet_of_another_kind_of_model_is_refused(
    base: Path, tmp_path: Path, make: Callable[[], UNet2DConditionModel], problem: str
) -> None:
    make().save_pretrained(tmp_path / "unet")
    with pytest.raises(WrongUse, match=problem):
        load_parts(str(base), "cpu", unet=str(tmp_path))


def test_a_unet_that_reads_the_scale_of_guidance_is_refused(base: Path, other: Path, tmp_path: Path) -> None:
    config = json.loads((other / "unet/config.json").read_bytes())
    UNet2DConditionModel.from_config({**config, "time_cond_proj_dim": 8}).save_pretrained(tmp_path / "unet")
    with pytest.raises(
        WrongUse, match=rf"{tmp_path}/unet: reads the scale of guidance .* as distilled models do; name"
    ):
        load_parts(str(base), "cpu", unet=str(tmp_path))


def test_a_sampler_that_draws_noise_is_refused_until_another_is_named(base: Path, other: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(base, tmp_path / "model")
    EulerAncestralDiscreteScheduler().save_pretrained(folder / "scheduler")
    with pytest.raises(WrongUse, match=r"own sampler is EulerAncestralDiscreteScheduler, .*; set scheduler to one of"):
        list(settings(folder, unet=str(other)).open().draw(requests("a cat")))
    (drawn,) = settings(folder, unet=str(other), scheduler="euler").open().draw(requests("a cat"))
    assert isinstance(drawn, Drawn) and drawn.provenance["scheduler"] == "euler"


def test_defaults_and_remarks_go_with_the_model() -> None:
    small = DiffusionImages(kind="diffusion", model="small")
    assert (small.model, small.steps, small.scheduler) == ("small", 20, "dpm-solver++") and "CC0" in small.licence
    published = DiffusionImages(kind="diffusion", model=SDXL, unet=DPO, resolution=1024, output_resolution=512)
    assert (published.steps, published.guidance, published.notes()) == (50, 5.0, "")
    fewer = published.model_copy(update={"steps": 4, "unet": None})
    assert fewer.notes().endswith("512): unet is the model's own, steps is 4.\n")
    assert (small.pool, small.model_copy(update={"device": "gpu"}).pool) == ("cpu", "gpu")
    with pytest.raises(ValueError, match="licence"):
        DiffusionImages(kind="diffusion", model="owner/other")
    with pytest.raises(ValueError, match="compiled is for a GPU alone"):
        DiffusionImages(kind="diffusion", model="small", compiled=True)


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
