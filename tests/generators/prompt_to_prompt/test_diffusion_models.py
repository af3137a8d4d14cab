import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from twinset.contracts.errors import WrongUse
from twinset.generators.prompt_to_prompt.pipeline import load_model
from twinset.models.diffusion.model_files import model_digest, model_folder, weights_digest
from twinset.models.files import ModelMissing


def test_a_folder_that_is_not_there_is_told_from_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ModelMissing, match=r"no model folder /models/sd: put .* unet/diffusion_pytorch_model.safetensors"
    ):
        load_model("/models/sd", "cpu")
    with pytest.raises(ModelMissing, match=r"no model folder ~nobody-of-that-name/sd that can be read .* home"):
        load_model("~nobody-of-that-name/sd", "cpu")
    with pytest.raises(ModelMissing, match=r"no model folder /xxx.* that can be read .*too long"):
        load_model("/" + "x" * 5000, "cpu")
    with pytest.raises(ModelMissing, match=r"neither a folder here nor in the Hugging Face cache.*`hf download own/sd"):
        load_model("own/sd", "cpu")
    with pytest.raises(ModelMissing, match="own--sd/x is neither a folder here"):  # no id that the hub would take
        load_model("own--sd/x", "cpu")
    (tmp_path / "own/sd").mkdir(parents=True)
    with pytest.raises(ModelMissing, match=r"the model own/sd lacks model_index.json: put them into own/sd"):
        load_model("own/sd", "cpu")


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
        load_model(str(folder), "cpu")


def test_pickled_weights_are_not_read(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    weights = folder / "unet/diffusion_pytorch_model.safetensors"
    torch.save({}, weights.with_suffix(".bin"))
    weights.unlink()
    with pytest.raises(ModelMissing, match="safetensors"):
        load_model(str(folder), "cpu")


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
    sdxl = load_model(str(saved("sdxl")), "cpu", torch.float16)
    assert (sdxl.unet.dtype, sdxl.text_encoder_2.dtype, sdxl.vae.dtype) == (torch.float16, torch.float16, torch.float32)
    exact = load_model(str(saved("stable-diffusion-1.4")), "cpu").vae.state_dict()
    half = load_model(str(saved("stable-diffusion-1.4")), "cpu", torch.float16).vae.state_dict()
    assert all(torch.equal(half[name], exact[name]) for name in exact)
    assert load_model(str(saved("small")), "cpu", torch.float16).vae.dtype == torch.float16
    assert load_model(str(saved("small")), "cpu").unet.dtype == torch.float32
