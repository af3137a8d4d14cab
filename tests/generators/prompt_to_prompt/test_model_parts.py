"""Models whose files are cut short, lack weights, or belong to several models."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from diffusers import UNet2DConditionModel
from safetensors.torch import load_file, save_file

from twinset.contracts.errors import WrongUse
from twinset.generators.prompt_to_prompt.pipeline import load_model
from twinset.models.diffusion.model_files import model_folder

UNET = "unet/diffusion_pytorch_model.safetensors"
TEXT = "text_encoder/model.safetensors"


@pytest.fixture
def copied(saved: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved("small"), tmp_path / "model"))


def _set(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **values}))


@pytest.mark.parametrize("weights", [UNET, TEXT, "vae/diffusion_pytorch_model.safetensors"])
def test_weights_that_are_missing_are_not_drawn_at_random(copied: Path, weights: str) -> None:
    tensors = load_file(copied / weights)
    del tensors[min(tensors)]
    save_file(tensors, copied / weights, metadata={"format": "pt"})
    with pytest.raises(
        WrongUse, match=r"/(unet|vae|text_encoder): the weights lack 1 tensors .*be random; .*get its files again"
    ):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize("weights", [UNET, TEXT])
def test_weights_that_are_cut_short_are_named(copied: Path, weights: str) -> None:
    (copied / weights).write_bytes((copied / weights).read_bytes()[:1000])
    with pytest.raises(WrongUse, match=rf"{copied}/{weights.split('/')[0]}: cannot be loaded .*get its files again"):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize(
    ("file", "values", "problem"),
    [
        ("unet/config.json", {"sample_size": None}, "sample_size is None; write the side"),
        ("unet/config.json", {"block_out_channels": [16, 32, 64]}, "cannot be loaded"),
        ("vae/config.json", {"latent_channels": 8}, "cannot be loaded"),
        ("scheduler/scheduler_config.json", {"num_train_timesteps": 10**12}, "num_train_timesteps must be a whole"),
        ("scheduler/scheduler_config.json", {"prediction_type": "x"}, "prediction_type is 'x'; it must be one of eps"),
        ("scheduler/scheduler_config.json", {"beta_schedule": "x"}, "cannot be loaded"),
        ("tokenizer/tokenizer_config.json", {"model_max_length": 10**30}, "model_max_length must be a whole number up"),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(
    copied: Path, file: str, values: dict[str, Any], problem: str
) -> None:
    _set(copied / file, **values)
    with pytest.raises(WrongUse, match=rf"{copied}/{file.split('/')[0]}.*{problem}"):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"in_channels": 9}, "the UNet takes 9 channels and gives 4, the autoencoder reads 4; name a text-to-image"),
        ({"cross_attention_dim": 24}, "text encoders give 32 channels, the UNet reads 24"),
        (
            {"down_block_types": ["DownBlock2D"] * 3, "up_block_types": ["UpBlock2D"] * 3, "mid_block_type": None},
            "unet: has no cross-attention",
        ),
    ],
)
def test_a_unet_of_another_kind_of_model_is_refused(copied: Path, changed: dict[str, Any], problem: str) -> None:
    config = json.loads((copied / "unet/config.json").read_bytes())
    UNet2DConditionModel.from_config({**config, **changed}).save_pretrained(copied / "unet")
    with pytest.raises(WrongUse, match=problem):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ({}, "weight_map must give the file of each tensor"),
        ({"weight_map": {"a": 1}}, "weight_map must give the file of each tensor"),
        ({"weight_map": {"a": "../../other.safetensors"}}, "leaves the folder"),
        ({"weight_map": {"a": "pieces.bin"}}, "'pieces.bin' is no safetensors file"),
    ],
)
def test_an_index_that_is_none_is_named(copied: Path, index: dict[str, Any], problem: str) -> None:
    (copied / UNET).unlink()
    file = copied / f"{UNET}.index.json"
    file.write_text(json.dumps(index))
    with pytest.raises(WrongUse, match=rf"{file}: .*{problem}"):
        model_folder(str(copied))
