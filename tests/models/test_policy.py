"""Every kind of network is opened under one policy: whole, without code of its folder, and without the network.

Folders of models come from others. Each kind is opened with damaged and hostile copies of a tiny model.

Pipelines of spaCy that are not installed, damaged or hostile are refused.
"""

import ast
import json
import shutil
import socket
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.diffusion.tiny_models import save_clip
from tests.models.model_kinds import HOSTILE, KINDS, Kind, filtered
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.checkpoints import read_weights
from twinset.models.spacy_pipelines import EMBEDDED, check_installed, find_pipeline, load_pipeline

PACKAGE = Path(__file__).resolve().parents[2] / "src/twinset"


FOLDERS = [name for name in KINDS if name != "evaluation, combiner"]  # that is a file which the user names
Copy = Callable[[str], tuple[Kind, Path]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of each kind, made once."""
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("kind") / "model"
            KINDS[name].save(made[name])
        return made[name]

    return folder


@pytest.fixture
def copy(saved: Callable[[str], Path], tmp_path: Path) -> Copy:
    """A kind, and a copy of its model."""
    return lambda name: (KINDS[name], Path(shutil.copytree(saved(name), tmp_path / "copy")))


@pytest.fixture(params=KINDS)
def copied(request: pytest.FixtureRequest, copy: Copy) -> tuple[Kind, Path]:
    """Every kind, and a copy of its model."""
    return copy(request.param)


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, copy: Copy) -> tuple[Kind, Path]:
    """Every kind whose folder is named, and a copy of its model."""
    return copy(request.param)


def read(path: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(path) if path.suffix == ".safetensors" else torch.load(path)
    return found


def write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    if path.suffix == ".safetensors":
        save_file(tensors, path, metadata={"format": "pt"})
    else:
        torch.save(tensors, path)


def test_a_tensor_that_is_missing_is_named(copied: tuple[Kind, Path]) -> None:
    """S1: absent tensors of a filter's CLIP were random, and scores went through."""
    kind, at = copied
    tensors = read(at / kind.weights)
    lost = next(name for name in sorted(tensors) if tensors[name].ndim > 1 and ("layer" in name or "block" in name))
    del tensors[lost]
    write(at / kind.weights, tensors)
    with pytest.raises(WrongUse, match=lost.replace(".", r"\.")):
        kind.open(at)


def test_a_tensor_that_is_left_over_is_named(copied: tuple[Kind, Path]) -> None:
    kind, at = copied
    write(at / kind.weights, {**read(at / kind.weights), "stray.weight": torch.ones(2)})
    with pytest.raises(WrongUse, match=r"stray\.weight"):
        kind.open(at)


@pytest.mark.parametrize(
    ("name", "left_over"),
    [
        ("evaluation, clip", "text_model.embeddings.position_ids"),
        ("filter of pairs, CLIP", "vision_model.embeddings.position_ids"),
        ("writer", "model.layers.0.self_attn.rotary_emb.inv_freq"),
        ("cola", "roberta.pooler.dense.weight"),
        ("vera", "decoder.block.0.layer.0.SelfAttention.q.weight"),
    ],
)
def test_tensors_that_published_weights_have_without_a_use_are_left(copy: Copy, name: str, left_over: str) -> None:
    kind, at = copy(name)
    write(at / kind.weights, {**read(at / kind.weights), left_over: torch.ones(2)})
    assert kind.open(at) is not None


class Touches:
    """Its unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_compressed_file_of_tensors_is_not_unpacked(copy: Copy, tmp_path: Path) -> None:
    kind, at = copy("evaluation, clip")
    torch.save(read(at / kind.weights), tmp_path / "whole")
    (at / kind.weights).unlink()
    path = at / "pytorch_model.bin"
    with zipfile.ZipFile(tmp_path / "whole") as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for part in whole.namelist():
            packed.writestr(part, whole.read(part))
    with pytest.raises(WrongUse, match="is compressed"):
        kind.open(at)
    with pytest.raises(WrongUse, match="is compressed"):
        read_weights(path)


@pytest.mark.parametrize("name", ["same", "other"])
def test_a_pickle_with_code_is_not_run(copied: tuple[Kind, Path], tmp_path: Path, name: str) -> None:
    kind, at = copied
    path = at / kind.weights
    tensors = {**read(path), "code": Touches(tmp_path / "was_run")}
    path.unlink()
    torch.save(tensors, path if name == "same" else path.with_name("pytorch_model.bin"))
    with pytest.raises(WrongUse):
        kind.open(at)
    assert not (tmp_path / "was_run").exists()


def test_no_code_of_a_folder_is_run(folder: tuple[Kind, Path], tmp_path: Path) -> None:
    """What names code is not followed: the library's own class is taken, or the folder is refused."""
    kind, at = folder
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


@pytest.mark.parametrize(
    "name", ["evaluation, clip", "writer", "questions, vilt", "diffusion, text", "pipeline, transformer"]
)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"attn_implementation": "evil/code"}, "attn_implementation is 'evil/code', which could run code"),
        ({"text_config": {"_attn_implementation": {"": "evil/code"}}}, "_attn_implementation is 'evil/code'"),
        ({"parts": [{"attn_implementation": "kernel"}]}, "attn_implementation is 'kernel'"),
        ({"transformers_weights": "other.safetensors"}, r"transformers_weights names another file of weights"),
        ({"quantization_config": {"quant_method": "awq"}}, r"are quantized \(quantization_config\); name the model"),
    ],
)
def test_a_configuration_names_no_kernel_and_no_other_weights(
    copy: Copy, name: str, settings: dict[str, Any], said: str
) -> None:
    kind, at = copy(name)
    path = at / Path(kind.weights).parent / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **settings}))
    with pytest.raises(WrongUse, match=said):
        kind.open(at)


def test_a_link_out_of_the_folder_is_refused(folder: tuple[Kind, Path], tmp_path: Path) -> None:
    kind, at = folder
    outside = tmp_path / "outside.safetensors"
    (at / kind.weights).rename(outside)
    (at / kind.weights).symlink_to(outside)
    with pytest.raises(WrongUse, match=r"out of the model's folder"):
        kind.open(at)
    (at / kind.weights).unlink()
    (at / kind.weights).symlink_to(kind.weights.rpartition("/")[2])
    with pytest.raises((WrongUse, OSError)):  # a link to itself is damage
        kind.open(at)


def test_links_of_the_cache_of_hugging_face_are_followed(tmp_path: Path) -> None:
    model = tmp_path / "models--own--clip"
    at = model / "snapshots/0123456789abcdef0123456789abcdef01234567"
    save_clip(at)
    (model / "blobs").mkdir()
    for path in [one for one in at.iterdir() if one.is_file()]:
        path.rename(model / "blobs" / path.name)
        path.symlink_to(Path("../../blobs") / path.name)
    assert filtered(at) is not None


def test_nothing_asks_the_network(copied: tuple[Kind, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, at = copied
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


#: Calls that open a network or unpickle one.
OPENING = {
    *("from_pretrained", "create_model", "create_model_and_transforms", "get_tokenizer", "load_state_dict_from_url"),
    *("get_frontal_face_detector", "cnn_face_detection_model_v1"),
}
LOADS = {"torch.load", "spacy.load", "pickle.load", "pickle.loads", "load_file", "safe_open"}
#: Files that a training run wrote for itself.
OWN = {"training/runs/checkpoints.py", "training/losses/mining.py"}


def test_networks_are_opened_in_models_alone() -> None:
    rooms = ("cards", "cli", "evaluation", "filters", "flows", "generators", "review", "shards", "stages", "training")
    found = set()
    for path in (path for room in rooms for path in (PACKAGE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name.rpartition(".")[2] in OPENING or name in LOADS:
                    found.add(path.relative_to(PACKAGE).as_posix())
    assert found - OWN == set()
    assert {path for path in OWN if path in found} == OWN


def test_a_library_or_pipeline_that_is_not_installed_is_named_before_work() -> None:
    check_installed("stages.graphs.source", EMBEDDED)
    with pytest.raises(WrongUse, match=r"^stages\.graphs\.source: no-such-parser is not installed; pip install"):
        check_installed("stages.graphs.source", EMBEDDED, "no-such-parser")
    with pytest.raises(WrongUse, match=r"^stages\.graphs\.source\.pipeline: pipeline no_such: neither"):
        check_installed("stages.graphs.source", "no_such")


def test_a_pipeline_of_spacy_with_a_link_a_damaged_file_or_a_tensor_less_is_refused(tmp_path: Path) -> None:
    at = Path(shutil.copytree(find_pipeline().source, tmp_path / "pipeline"))
    strings = at / "vocab/strings.json"
    known = strings.read_bytes()
    strings.write_text("0.5")
    with pytest.raises(WrongUse, match=r"spaCy cannot load it \('float' object is not iterable\)"):
        load_pipeline(find_pipeline(str(at)), ("DEP",))
    strings.write_bytes(known)
    model = at / "parser/model"
    model.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    with pytest.raises(WrongUse, match="spaCy cannot load it"):
        load_pipeline(find_pipeline(str(at)), ("DEP",))
    model.rename(tmp_path / "outside")
    model.symlink_to(tmp_path / "outside")
    with pytest.raises(WrongUse, match="out of the model's folder"):
        find_pipeline(str(at))
