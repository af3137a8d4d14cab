"""Every kind of network is opened under one policy: whole, without code of its folder, and without the network.

Folders of models come from others. Each kind is opened with damaged and hostile copies of a tiny model.
"""

import ast
import json
import shutil
import socket
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.evaluation.scorers.opened import FAST
from tests.evaluation.scorers.tiny_models import open_clip_config, open_clip_network, save_transformers
from tests.generators.caption_scores import tiny_scorers
from tests.generators.prompt_to_prompt.tiny_models import save_clip, save_small
from tests.models.language_models import tiny_model
from tests.models.pipelines.tiny_pipelines import save as save_pipeline
from tests.models.visual_questions.tiny_models import save_blip, save_vilt
from twinset.evaluation.scorers.kinds import open_model
from twinset.filters.directional_similarity import DirectionalSimilarity
from twinset.manifests.errors import WrongUse
from twinset.models.diffusion.settings import DiffusionImages
from twinset.models.encoders.checkpoints import read_weights
from twinset.models.language_models.settings import Transformers as LanguageModel
from twinset.models.pipelines.settings import DiffusersImages
from twinset.models.visual_questions.settings import Transformers as VisualQuestions

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Kind:
    """How a kind of networks is saved and opened. weights: its file in the folder."""

    save: Callable[[Path], Any]
    open: Callable[[Path], Any]
    weights: str = "model.safetensors"


def save_open_clip(folder: Path) -> None:
    config = json.loads(open_clip_config(folder).read_text())
    (folder / "tiny.json").unlink()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    save_file(open_clip_network().state_dict(), folder / "open_clip_model.safetensors")


def save_diffusion(folder: Path) -> None:
    shutil.copytree(save_small(folder.parent / "made"), folder)


def save_combiner(folder: Path) -> None:
    from twinset.models.encoders.combiner import CombinerNetwork

    folder.mkdir()
    save_file(CombinerNetwork(8, 4, 4).state_dict(), folder / "model.safetensors")


def filtered(folder: Path) -> Any:
    return DirectionalSimilarity(kind="directional-similarity", model=str(folder)).open()._clip


def scorer(kind: str) -> Callable[[Path], Any]:
    return lambda folder: tiny_scorers.settings(kind, folder).open("cpu")


def evaluated(kind: str) -> Callable[[Path], Any]:
    return lambda folder: open_model(f"{kind}:{folder}", FAST)


def combined(folder: Path) -> Any:
    config = open_clip_config(folder.parent)
    return open_model(f"combiner:{folder / 'model.safetensors'}:random:{config}", FAST)


def saved_as(kind: str) -> Callable[[Path], Any]:
    return lambda folder: save_transformers(folder, kind)


def drawn(folder: Path) -> Any:
    return DiffusionImages(kind="diffusion", model=str(folder), licence="MIT").open()._model


def save_flux(folder: Path) -> None:
    shutil.copytree(save_pipeline(folder.parent / "made", "FluxPipeline"), folder)


def pipeline(folder: Path) -> Any:
    return DiffusersImages(kind="diffusers", model=str(folder), licence="MIT").open().pipeline


def answering(folder: Path) -> Any:
    return VisualQuestions(kind="transformers", model=str(folder)).open().loaded


OPEN_CLIP = "open_clip_model.safetensors"
DIFFUSERS = "diffusion_pytorch_model.safetensors"
KINDS = {
    "filter of pairs, CLIP": Kind(save_clip, filtered),
    "filter of pairs, open_clip": Kind(save_open_clip, filtered, OPEN_CLIP),
    "vera": Kind(tiny_scorers.save_vera, scorer("vera")),
    "cola": Kind(tiny_scorers.save_cola, scorer("cola"), "pytorch_model.bin"),
    "language-model": Kind(tiny_scorers.save_language_model, scorer("language-model")),
    "similarity, CLIP": Kind(save_clip, scorer("clip")),
    "similarity, open_clip": Kind(save_open_clip, scorer("clip"), OPEN_CLIP),
    "evaluation, open_clip": Kind(save_open_clip, evaluated("open_clip"), OPEN_CLIP),
    "evaluation, clip": Kind(saved_as("clip"), evaluated("clip")),
    "evaluation, siglip": Kind(saved_as("siglip"), evaluated("siglip")),
    "evaluation, blip-itm": Kind(saved_as("blip"), evaluated("blip-itm")),
    "evaluation, vilt": Kind(saved_as("vilt"), evaluated("vilt")),
    "evaluation, flava": Kind(saved_as("flava"), evaluated("flava")),
    "evaluation, combiner": Kind(save_combiner, combined),
    "questions, blip": Kind(save_blip, answering),
    "questions, vilt": Kind(save_vilt, answering),
    "writer": Kind(tiny_model.save, lambda at: LanguageModel(kind="transformers", model=str(at)).open().loaded),
    "diffusion, unet": Kind(save_diffusion, drawn, f"unet/{DIFFUSERS}"),
    "diffusion, vae": Kind(save_diffusion, drawn, f"vae/{DIFFUSERS}"),
    "diffusion, text": Kind(save_diffusion, drawn, "text_encoder/model.safetensors"),
    "pipeline, transformer": Kind(save_flux, pipeline, f"transformer/{DIFFUSERS}"),
    "pipeline, vae": Kind(save_flux, pipeline, f"vae/{DIFFUSERS}"),
    "pipeline, text": Kind(save_flux, pipeline, "text_encoder_2/model.safetensors"),
}
FOLDERS = {name: kind for name, kind in KINDS.items() if name != "evaluation, combiner"}  # a file that the user names


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


@pytest.fixture(params=KINDS)
def copied(request: pytest.FixtureRequest, saved: Callable[[str], Path], tmp_path: Path) -> tuple[Kind, Path]:
    """A kind, and a copy of its model."""
    return KINDS[request.param], Path(shutil.copytree(saved(request.param), tmp_path / "copy"))


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, saved: Callable[[str], Path], tmp_path: Path) -> tuple[Kind, Path]:
    """A kind whose folder is named, and a copy of its model."""
    return KINDS[request.param], Path(shutil.copytree(saved(request.param), tmp_path / "copy"))


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
def test_tensors_that_published_weights_have_without_a_use_are_left(
    saved: Callable[[str], Path], tmp_path: Path, name: str, left_over: str
) -> None:
    kind, at = KINDS[name], Path(shutil.copytree(saved(name), tmp_path / "copy"))
    write(at / kind.weights, {**read(at / kind.weights), left_over: torch.ones(2)})
    assert kind.open(at) is not None


class Touches:
    """Its unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_compressed_file_of_tensors_is_not_unpacked(saved: Callable[[str], Path], tmp_path: Path) -> None:
    kind, at = KINDS["evaluation, clip"], Path(shutil.copytree(saved("evaluation, clip"), tmp_path / "copy"))
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


CODE = """
from pathlib import Path

Path(__file__).with_name("was_run").touch()
MARKER = "{marker}"
Path(MARKER).touch()


class Evil:
    pass
"""


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
            (path.parent / "evil.py").write_text(CODE.format(marker=tmp_path / "was_run"))
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
    saved: Callable[[str], Path], tmp_path: Path, name: str, settings: dict[str, Any], said: str
) -> None:
    kind, at = KINDS[name], Path(shutil.copytree(saved(name), tmp_path / "copy"))
    path = at / Path(kind.weights).parent / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **settings}))
    with pytest.raises(WrongUse, match=said):
        kind.open(at)


@pytest.mark.parametrize("opened", [filtered, scorer("clip"), evaluated("open_clip")])
@pytest.mark.parametrize(
    ("part", "settings", "said"),
    [
        (
            "text_cfg",
            {"hf_tokenizer_name": "own/words", "tokenizer_kwargs": {"trust_remote_code": True}},
            "tokenizer_kwargs has 'trust_remote_code'",
        ),
        ("text_cfg", {"tokenizer_kwargs": {"bpe_path": "/etc/hostname"}}, "tokenizer_kwargs has 'bpe_path'"),
        ("text_cfg", {"tokenizer_kwargs": ["clean"]}, "tokenizer_kwargs has "),
        ("text_cfg", {"hf_model_name": "own/bert"}, "hf_model_name"),
        ("vision_cfg", {"timm_model_name": "hf-hub:own/vit"}, "is the address 'hf-hub:own/vit'"),
        ("vision_cfg", {"timm_model_name": "local-dir:/elsewhere"}, "is the address 'local-dir:/elsewhere'"),
        ("text_cfg", {"hf_tokenizer_name": "/elsewhere"}, "'/elsewhere' leads out of the model's folder"),
        ("text_cfg", {"hf_tokenizer_name": "words/../../elsewhere"}, "elsewhere' leads out of the model's folder"),
        ("text_cfg", {"hf_tokenizer_name": "hf-hub:own/words"}, "there is no model folder hf-hub:own/words"),
    ],
)
def test_a_configuration_of_open_clip_hands_on_nothing_that_runs_code_or_asks_a_hub(
    tmp_path: Path, opened: Callable[[Path], Any], part: str, settings: dict[str, Any], said: str
) -> None:
    """S1: ``tokenizer_kwargs`` of a filter's open_clip_config.json ran a Python file of its folder."""
    at = tmp_path / "model"
    save_open_clip(at)
    config = json.loads((at / "open_clip_config.json").read_bytes())
    config["model_cfg"][part] |= settings
    (at / "open_clip_config.json").write_text(json.dumps(config))
    if "tokenizer_kwargs" in settings:
        words = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
        (at / "tokenizer_config.json").write_text(json.dumps(words))
        (at / "evil.py").write_text(CODE.format(marker=tmp_path / "was_run"))
    with pytest.raises(WrongUse, match=said):
        opened(at)
    assert not (tmp_path / "was_run").exists()


def test_a_transform_of_open_clip_that_is_unknown_is_refused(tmp_path: Path) -> None:
    at = tmp_path / "model"
    save_open_clip(at)
    config = json.loads((at / "open_clip_config.json").read_bytes())
    (at / "open_clip_config.json").write_text(json.dumps({**config, "preprocess_cfg": {"interpolation": "evil"}}))
    with pytest.raises(WrongUse, match="cannot be loaded"):
        evaluated("open_clip")(at)


def test_a_tokenizer_beside_a_configuration_of_open_clip_is_read(tmp_path: Path) -> None:
    from tests.evaluation.scorers.tiny_models import save_tokenizer

    at = tmp_path / "model"
    save_open_clip(at)
    save_tokenizer(at, "siglip")
    config = json.loads((at / "open_clip_config.json").read_bytes())
    config["model_cfg"]["text_cfg"] |= {"hf_tokenizer_name": "own/words", "tokenizer_kwargs": {"clean": "canonicalize"}}
    (at / "open_clip_config.json").write_text(json.dumps(config))
    first, second = evaluated("open_clip")(at).text_features(["a red cat", "A  red, cat!"])
    assert first.tolist() == second.tolist()
    before, words = evaluated("open_clip")(at).digest(), json.loads((at / "tokenizer.json").read_bytes())
    (at / "tokenizer.json").write_text(json.dumps({**words, "normalizer": {"type": "Lowercase"}}))
    assert evaluated("open_clip")(at).digest() != before


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


def test_a_pipeline_of_spacy_with_a_link_a_damaged_file_or_a_tensor_less_is_refused(tmp_path: Path) -> None:
    from twinset.models.spacy_pipelines import find_pipeline, load_pipeline

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
    for path in (path for room in rooms for path in (CHECKOUT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name.rpartition(".")[2] in OPENING or name in LOADS:
                    found.add(path.relative_to(CHECKOUT).as_posix())
    assert found - OWN == set()
    assert {path for path in OWN if path in found} == OWN
