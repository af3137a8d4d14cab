"""Architectures and checkpoints of open_clip by name: shipped, tagged in the Hugging Face cache, or local files."""

import logging
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import is_model_folder
from twinset.models.files import BROUGHT, TOKENIZERS, ModelMissing, brought_model, local_folder, read_json, refuse_links

CONFIG = "open_clip_config.json"
#: In the order in which open_clip prefers them.
FILES = (
    *("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors"),
    *("open_clip_pytorch_model.bin", "open_clip_pytorch_model.pth"),
)
QUICK = "-quickgelu"
TOKENIZER_SETTINGS = frozenset({"clean", "strip_sep_token"})  # of the configurations that open_clip ships
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model without its weights.

    name: for messages. model, image: open_clip's ``model_cfg`` and ``preprocess_cfg``. folder: where its own tokenizer
    may lie.
    """

    name: str
    model: dict[str, Any]
    image: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def check(self) -> None:
        """Raise `WrongUse` where open_clip would ask a hub, read other files, or hand on what runs code.

        A configuration comes from others: open_clip gives ``tokenizer_kwargs`` to transformers as they are.
        """
        text, vision = self.model["text_cfg"], self.model["vision_cfg"]
        parts = [one for one in self.model.values() if isinstance(one, dict)]
        if not isinstance(text, dict) or not isinstance(vision, dict):
            raise WrongUse(f"open_clip:{self.name}: text_cfg and vision_cfg must be objects; get its file again")
        if any(one.get("hf_model_name") for one in parts):
            raise WrongUse(
                f"open_clip:{self.name}: its text tower is built from another model's files (hf_model_name); export it "
                "in transformers' layout and name clip:FOLDER"
            )
        if ":" in str(vision.get("timm_model_name") or ""):
            raise WrongUse(
                f"open_clip:{self.name}: vision_cfg.timm_model_name is the address {vision['timm_model_name']!r}, and "
                "nothing is downloaded; name one of timm's own models there"
            )
        words = str(text.get("hf_tokenizer_name") or "")
        if ".." in words or is_model_folder(words):
            raise WrongUse(
                f"open_clip:{self.name}: text_cfg.hf_tokenizer_name {words!r} leads out of the model's folder; put the "
                "tokenizer's files beside the configuration"
            )
        given = text.get("tokenizer_kwargs") or {}
        if not isinstance(given, dict) or (others := sorted(given.keys() - TOKENIZER_SETTINGS)):
            which = others[0] if isinstance(given, dict) else given
            raise WrongUse(
                f"open_clip:{self.name}: text_cfg.tokenizer_kwargs has {which!r}, which is not handed to a tokenizer, "
                f"since it could run code; known are {', '.join(sorted(TOKENIZER_SETTINGS))}: remove it, if the model "
                "works without"
            )

    def tokenizer(self) -> tuple[Path, list[Path]] | None:
        """The folder of its tokenizer of transformers, and the files there; raises as `local_folder`."""
        if not (name := self.model["text_cfg"].get("hf_tokenizer_name")):
            return None
        folder = self.folder
        if folder is None or not any((folder / file).is_file() for file in TOKENIZERS):
            folder = local_folder(str(name), "It holds a tokenizer")
        words = (*TOKENIZERS, "spiece.model", "sentencepiece.bpe.model", "vocab.txt", "config.json")
        return folder, [folder / file for file in words if (folder / file).is_file()]


def find_architecture(name: str) -> Architecture:
    """An architecture by open_clip's name, from a JSON file or a folder in its layout, or of a model that an installed
    package brings. Raises `WrongUse`: there is none of this name; near ones are suggested. Or the file is not a
    configuration.
    """
    path = _model_path(name)
    if path.suffix == ".json" or path.is_dir():
        if path.is_dir():
            refuse_links(path)
            path = path / CONFIG
        if not path.is_file():
            raise ModelMissing(f"there is no configuration {path}: it is open_clip's JSON of a model's sizes")
        found = read_json(path)
        model = found.get("model_cfg", found)
        if not isinstance(model, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(model):
            raise WrongUse(f"{path}: not a configuration of open_clip: it needs embed_dim, vision_cfg and text_cfg")
        return Architecture(name, model, found.get("preprocess_cfg") or {}, path.parent)
    shipped = {file.stem: file for file in (_library() / "model_configs").glob("*.json")}
    if (file := shipped.get(name.replace("/", "-"))) is None:
        near = get_close_matches(name, [*shipped, *BROUGHT.kinds()], 3, 0.5)
        hint = f"near are {', '.join(near)}" if near else "such as ViT-B-32"
        raise WrongUse(f"no folder or model of open_clip is called {name!r}: {hint}; or name a JSON file of sizes")
    return Architecture(name, read_json(file))


def _model_path(name: str) -> Path:
    brought = brought_model(name)
    return Path(name) if brought is None else brought.folder


def weights_of_folder(name: str) -> str:
    """The weights in a model's folder, or of one that a package brings; empty where there are none."""
    folder = _model_path(name)
    return str(next((folder / file for file in FILES if (folder / file).is_file()), ""))


def _library() -> Path:
    """The folder of open_clip, which is not imported: it imports torch, and a name may be wrong."""
    found = find_spec("open_clip")
    if found is None or found.origin is None:
        raise ImportError("No module named 'open_clip'", name="open_clip")
    return Path(found.origin).parent


@cache
def _published() -> Any:
    """open_clip's table of published weights, ``open_clip.pretrained``, without the rest of open_clip and torch."""
    if "open_clip" in sys.modules:
        return import_module("open_clip.pretrained")
    package = ModuleType("twinset_open_clip_names")
    package.__path__ = [str(_library())]
    modules: dict[str, Any] = sys.modules
    modules[package.__name__], held = package, modules.get("safetensors.torch")
    modules["safetensors.torch"] = held  # None: as if it were not installed
    try:
        return import_module(f"{package.__name__}.pretrained")
    finally:
        if held is None:
            del modules["safetensors.torch"]


def find_checkpoint(name: str, parts: Sequence[str]) -> tuple[Architecture, Path]:
    """An architecture and the file of its weights: by a name and a tag or a file, or a folder of both.

    Args:
        name: as it was asked for, for messages.
        parts: one or two; see `open_clip_models.open_open_clip`.

    Raises:
        WrongUse: there is no such architecture, tag, file or folder.
    """
    architecture, checkpoint = find_architecture(parts[0]), parts[1] if len(parts) > 1 else ""
    if not checkpoint and _model_path(parts[0]).is_dir():
        checkpoint = weights_of_folder(parts[0])
        if not checkpoint:
            raise ModelMissing(f"{parts[0]}: lacks {' or '.join(FILES[::2])}: put the weights there")
    if not checkpoint:
        raise WrongUse(
            f"--model {name}: names no weights; write open_clip:{parts[0]}:TAG with {_tags_of(parts[0])}, or "
            f"open_clip:{parts[0]}:FILE, or random:{parts[0]} for random ones"
        )
    return tagged(architecture, parts[0], checkpoint) or _local(architecture, parts[0], checkpoint)


def _tags_of(name: str) -> str:
    """The tags of a model in words, for messages."""
    tags = _published().list_pretrained_tags_by_model(name)
    return f"one of {', '.join(tags[:6])}" if tags else "a tag (open_clip has none for it)"


def tagged(architecture: Architecture, name: str, tag: str) -> tuple[Architecture, Path] | None:
    """Published weights in the Hugging Face cache, with the activation and the transform that they need."""
    if Path(tag).exists() or not (facts := _published().get_pretrained_cfg(name.replace("/", "-"), tag)):
        return None
    model = deepcopy(architecture.model)
    if bool(facts.get("quick_gelu")) != bool(model.get("quick_gelu")):
        model["quick_gelu"] = bool(facts.get("quick_gelu"))
        which = "QuickGELU, as these weights need" if model["quick_gelu"] else "GELU: these weights are not QuickGELU's"
        _LOG.warning("open_clip:%s:%s: runs with %s", name, tag, which)
    image = {key: facts[key] for key in ("mean", "std", "interpolation", "resize_mode") if facts.get(key)}
    repository, _, file = str(facts.get("hf_hub") or "").rpartition("/")
    if not repository:
        raise ModelMissing(
            f"open_clip:{name}:{tag}: is published at {facts.get('url')}; nothing is downloaded while scoring: get the "
            f"file and write open_clip:{name}{QUICK if model.get('quick_gelu') else ''}:FILE"
        )
    folder = local_folder(repository, "It holds open_clip's weights")
    files = [file] if file else FILES
    found = next((folder / one for one in files if (folder / one).is_file()), None)
    if found is None:
        raise ModelMissing(f"{folder}: lacks {' or '.join(files[:2])}; run `hf download {repository}` again")
    return Architecture(f"{name} ({tag})", model, image, folder), found


def _local(architecture: Architecture, name: str, checkpoint: str) -> tuple[Architecture, Path]:
    """A checkpoint that is a file; warns where its activation is open. Raises `ModelMissing` where there is none."""
    path = Path(checkpoint).expanduser()
    if not path.exists():
        tags = _published().list_pretrained_tags_by_model(name)
        near = get_close_matches(checkpoint, tags, 3, 0.5)
        hint = f"near are the tags {', '.join(near)}" if near else f"it takes {_tags_of(name)}, or a file"
        raise ModelMissing(f"open_clip:{name}:{checkpoint}: neither a tag of {name} nor a file here; {hint}")
    if not architecture.model.get("quick_gelu") and (_library() / f"model_configs/{name}{QUICK}.json").is_file():
        # A file does not say its activation. BiVLC's, NegCLIP's and GeneCIS's were all tuned from OpenAI's weights.
        _LOG.warning(
            "%s: runs with GELU; if it was trained from OpenAI's weights, as those of BiVLC, NegCLIP and GeneCIS were, "
            "it needs QuickGELU, and its scores drop without it: write open_clip:%s%s:FILE",
            *(path, name, QUICK),
        )
    return architecture, path
