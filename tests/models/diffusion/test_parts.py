"""Models on disk: whole ones are loaded without pickles or downloads; cut, mixed or foreign ones are named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import load_file, save_file

from twinset.contracts.errors import WrongUse
from twinset.models.diffusion.model_files import model_digest, model_folder, weights_digest
from twinset.models.diffusion.models import load_parts, new_scheduler
from twinset.models.files import ModelMissing


def test_a_folder_that_is_not_there_is_told_from_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ModelMissing, match=r"no model folder /models/sd: put .* unet/diffusion_pytorch_model.safetensors"
    ):
        load_parts("/models/sd", "cpu")
    with pytest.raises(ModelMissing, match=r"no model folder ~nobody-of-that-name/sd that can be read .* home"):
        load_parts("~nobody-of-that-name/sd", "cpu")
    with pytest.raises(ModelMissing, match=r"no model folder /xxx.* that can be read .*too long"):
        load_parts("/" + "x" * 5000, "cpu")
    with pytest.raises(ModelMissing, match=r"neither a folder here nor in the Hugging Face cache.*`hf download own/sd"):
        load_parts("own/sd", "cpu")
    with pytest.raises(ModelMissing, match="own--sd/x is neither a folder here"):  # no id that the hub would take
        load_parts("own--sd/x", "cpu")
    (tmp_path / "own/sd").mkdir(parents=True)
    with pytest.raises(ModelMissing, match=r"the model own/sd lacks model_index.json: put them into own/sd"):
        load_parts("own/sd", "cpu")


def test_a_cached_hub_id_is_found_and_nothing_is_downloaded(
    saved: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--own--sd/snapshots/0123456789abcdef0123456789abcdef01234567"
    shutil.copytree(saved("small"), snapshot)
    (tmp_path / "models--own--sd/refs").mkdir()
    (tmp_path / "models--own--sd/refs/main").write_text(snapshot.name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert model_folder("own/sd") == snapshot
    assert model_digest("own/sd") == model_digest(str(saved("small")))


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("small", "unet/diffusion_pytorch_model.safetensors"),
        ("small", "text_encoder/config.json"),
        ("small", "scheduler/scheduler_config.json"),
        ("sdxl", "text_encoder_2/model.fp16.safetensors"),
    ],
)
def test_what_is_missing_is_named(saved: Callable[[str], Path], tmp_path: Path, kind: str, lost: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved(kind), folder)
    (folder / lost).unlink()
    with pytest.raises(ModelMissing, match=f"lacks {lost.replace('.fp16', '')}: put them into {folder}"):
        load_parts(str(folder), "cpu")


def test_pickled_weights_are_not_read(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    weights = folder / "unet/diffusion_pytorch_model.safetensors"
    torch.save({}, weights.with_suffix(".bin"))
    weights.unlink()
    with pytest.raises(ModelMissing, match="safetensors"):
        load_parts(str(folder), "cpu")


def test_a_configuration_that_cannot_be_read_is_named(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    for content in ("version https://git-lfs.github.com/spec/v1", "[]"):
        (folder / "model_index.json").write_text(content)
        with pytest.raises(WrongUse, match=rf"{folder}/model_index.json: no.* JSON.*; get the file again"):
            model_folder(str(folder))


def test_the_digest_is_of_what_the_model_draws_with(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    files = weights_digest(str(folder))
    assert {"unet/diffusion_pytorch_model.safetensors", "vae/config.json", "tokenizer/tokenizer.json"} <= set(files)
    (folder / "README.md").write_text("about it")
    assert weights_digest(str(folder)) == files
    (folder / "scheduler/scheduler_config.json").write_text("{}")
    changed = weights_digest(str(folder))
    assert {name for name in files if files[name] != changed[name]} == {"scheduler/scheduler_config.json"}


def test_parts_have_the_asked_precision_but_an_autoencoder_that_would_overflow(saved: Callable[[str], Path]) -> None:
    sdxl = load_parts(str(saved("sdxl")), "cpu", torch.float16)
    assert (sdxl.unet.dtype, sdxl.text_encoder_2.dtype, sdxl.vae.dtype) == (torch.float16, torch.float16, torch.float32)
    exact = load_parts(str(saved("stable-diffusion-1.4")), "cpu").vae.state_dict()
    half = load_parts(str(saved("stable-diffusion-1.4")), "cpu", torch.float16).vae.state_dict()
    assert all(torch.equal(half[name], exact[name]) for name in exact)
    assert load_parts(str(saved("small")), "cpu", torch.float16).vae.dtype == torch.float16
    assert load_parts(str(saved("small")), "cpu").unet.dtype == torch.float32


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
        load_parts(str(copied), "cpu")


@pytest.mark.parametrize("weights", [UNET, TEXT])
def test_weights_that_are_cut_short_are_named(copied: Path, weights: str) -> None:
    (copied / weights).write_bytes((copied / weights).read_bytes()[:1000])
    with pytest.raises(WrongUse, match=rf"{copied}/{weights.split('/')[0]}: cannot be loaded .*get its files again"):
        load_parts(str(copied), "cpu")


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
        new_scheduler(load_parts(str(copied), "cpu").folder, "ddim")


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
        load_parts(str(copied), "cpu")


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
