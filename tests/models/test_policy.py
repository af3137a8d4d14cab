"""Every kind of network is opened under one policy: whole, without code of its folder, and without the network.

Folders of models come from others. Each kind is opened with damaged and hostile copies of a tiny model.
"""

import json
import re
import shutil
import socket
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.diffusion.tiny_models import save_clip
from tests.models.model_kinds import HOSTILE, KINDS, Kind, filtered
from twinset.contracts.errors import WrongUse

PACKAGE = Path(__file__).resolve().parents[2] / "src/twinset"
FOLDERS = [name for name in KINDS if name != "evaluation, combiner"]  # that is a file which the user names
Copy = Callable[[str], tuple[Kind, Path]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Path], Any]], Path]:
    @cache
    def folder(save: Callable[[Path], Any]) -> Path:
        path = tmp_path_factory.mktemp("kind") / "model"
        save(path)
        return path

    return folder


@pytest.fixture
def copy(saved: Callable[[Callable[[Path], Any]], Path], tmp_path: Path) -> Copy:
    return lambda name: (KINDS[name], Path(shutil.copytree(saved(KINDS[name].save), tmp_path / "copy")))


def read(path: Path) -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = load_file(path) if path.suffix == ".safetensors" else torch.load(path)
    return tensors


def write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    if path.suffix == ".safetensors":
        save_file(tensors, path, metadata={"format": "pt"})
    else:
        torch.save(tensors, path)


class Touches:
    """Its unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def lacks_a_tensor(path: Path, outside: Path) -> str:
    """S1: absent tensors of a filter's CLIP were random, and scores went through."""
    tensors = read(path)
    lost = next(name for name in sorted(tensors) if tensors[name].ndim > 1 and ("layer" in name or "block" in name))
    del tensors[lost]
    write(path, tensors)
    return lost.replace(".", r"\.")


def has_a_stray_tensor(path: Path, outside: Path) -> str:
    write(path, {**read(path), "stray.weight": torch.ones(2)})
    return r"stray\.weight"


def holds_code(path: Path, outside: Path, name: str = "") -> str:
    tensors = {**read(path), "code": Touches(outside / "was_run")}
    path.unlink()
    torch.save(tensors, path.with_name(name) if name else path)
    return ""


def holds_code_under_another_name(path: Path, outside: Path) -> str:
    return holds_code(path, outside, "pytorch_model.bin")


def is_cut_short(path: Path, outside: Path) -> str:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return ""


def is_compressed(path: Path, outside: Path) -> str:
    torch.save(read(path), outside / "whole")
    path.unlink()
    with (
        zipfile.ZipFile(outside / "whole") as whole,
        zipfile.ZipFile(path.with_name("pytorch_model.bin"), "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for part in whole.namelist():
            packed.writestr(part, whole.read(part))
    return ""


def links_outside(path: Path, outside: Path) -> str:
    path.rename(outside / "weights")
    path.symlink_to(outside / "weights")
    return "out of the model's folder"


def has_an_adapter(path: Path, outside: Path) -> str:
    (path.parent / "adapter_config.json").write_text("{}")
    return "adapter"


HARMS = (lacks_a_tensor, has_a_stray_tensor, holds_code, holds_code_under_another_name, is_cut_short, is_compressed)


@pytest.mark.parametrize("harm", [*HARMS, links_outside, has_an_adapter], ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("name", KINDS)
def test_each_class_refuses(copy: Copy, tmp_path: Path, name: str, harm: Callable[[Path, Path], str]) -> None:
    if name not in FOLDERS and harm in (links_outside, has_an_adapter):
        return
    kind, at = copy(name)
    words = harm(at / kind.weights, tmp_path)
    with pytest.raises(WrongUse, match=words or None):
        kind.open(at)
    assert not (tmp_path / "was_run").exists()


#: By file: settings that would run code or read other files, and words of the refusal.
SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("config.json", {"attn_implementation": "evil/code"}, "attn_implementation is 'evil/code', which could run code"),
    ("config.json", {"text_config": {"_attn_implementation": {"": "evil/code"}}}, "is 'evil/code'"),
    ("config.json", {"parts": [{"attn_implementation": "kernel"}]}, "attn_implementation is 'kernel'"),
    ("config.json", {"transformers_weights": "other.safetensors"}, "transformers_weights"),
    ("config.json", {"configuration_files": ["config.4.0.0.json"]}, "configuration_files"),
    ("config.json", {"quantization_config": {"quant_method": "awq"}}, "quantization_config"),
    ("tokenizer_config.json", {"fast_tokenizer_files": ["tokenizer.4.0.0.json"]}, "names other files"),
]


@pytest.mark.parametrize("name", FOLDERS)
def test_each_class_refuses_kernels_and_weights_that_a_configuration_names(copy: Copy, name: str) -> None:
    kind, at = copy(name)
    for file, settings, words in SETTINGS:
        path = at / Path(kind.weights).parent / file
        if not path.is_file():  # open_clip's has another name: `encoders.test_encoders`
            continue
        whole = path.read_text()
        path.write_text(json.dumps({**json.loads(whole), **settings}))
        with pytest.raises(WrongUse, match=words):
            kind.open(at)
        path.write_text(whole)


@pytest.mark.parametrize("name", FOLDERS)
def test_no_code_of_a_folder_is_run(copy: Copy, tmp_path: Path, name: str) -> None:
    """What names code is not followed: the library's own class is taken, or the folder is refused."""
    kind, at = copy(name)
    kinds = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification", "AutoProcessor")
    code = {"auto_map": {**dict.fromkeys((*kinds, "AutoImageProcessor"), "evil.Evil")}, "trust_remote_code": True}
    words = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "trust_remote_code": True}
    for path in [*at.rglob("*.json")]:
        if path.name in ("config.json", "preprocessor_config.json", "tokenizer_config.json"):
            given = words if path.name == "tokenizer_config.json" else code
            path.write_text(json.dumps({**json.loads(path.read_bytes()), **given}))
            (path.parent / "evil.py").write_text(HOSTILE.format(marker=tmp_path / "was_run"))
    with suppress(WrongUse):
        kind.open(at)
    assert not (tmp_path / "was_run").exists() and not [*at.rglob("was_run")]


@pytest.mark.parametrize("name", KINDS)
def test_nothing_asks_the_network(copy: Copy, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kind, at = copy(name)
    asked: list[Any] = []

    def refused(*given: Any, **_: Any) -> Any:
        asked.append(given[-1])
        raise OSError("no network")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    assert kind.open(at) is not None
    assert asked == []


@pytest.mark.parametrize(
    ("name", "left_over"),
    [
        ("evaluation, clip", "text_model.embeddings.position_ids"),
        ("writer", "model.layers.0.self_attn.rotary_emb.inv_freq"),
        ("cola", "roberta.pooler.dense.weight"),
        ("vera", "decoder.block.0.layer.0.SelfAttention.q.weight"),
    ],
)
def test_tensors_that_published_weights_have_without_a_use_are_left(copy: Copy, name: str, left_over: str) -> None:
    kind, at = copy(name)
    write(at / kind.weights, {**read(at / kind.weights), left_over: torch.ones(2)})
    assert kind.open(at) is not None


def test_links_of_the_cache_of_hugging_face_are_followed(tmp_path: Path) -> None:
    model = tmp_path / "models--own--clip"
    at = model / "snapshots/0123456789abcdef0123456789abcdef01234567"
    save_clip(at)
    (model / "blobs").mkdir()
    for path in [path for path in at.iterdir() if path.is_file()]:
        path.rename(model / "blobs" / path.name)
        path.symlink_to(Path("../../blobs") / path.name)
    assert filtered(at) is not None


#: Calls that open a network or unpickle one.
OPENING = re.compile(
    r"\b(from_pretrained|create_model\w*|get_tokenizer|load_state_dict_from_url|get_frontal_face_detector"
    r"|cnn_face_detection_model_v1|torch\.load|spacy\.load|pickle\.loads?|load_file|safe_open)\("
)
#: Files that a training run wrote for itself.
OWN = {"training/runs/checkpoint.py", "training/fusion/data.py"}


def test_networks_are_opened_in_models_alone() -> None:
    opening = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if OPENING.search(path.read_text("utf-8"))}
    assert {path.as_posix() for path in opening if path.parts[0] != "models"} == OWN
