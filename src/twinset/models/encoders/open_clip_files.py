"""Architectures and checkpoints of open_clip by name: shipped, tagged in the Hugging Face cache, or local files."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import is_model_folder
from twinset.models.files import (
    BROUGHT,
    TOKENIZERS,
    Layout,
    ModelFiles,
    ModelMissing,
    brought_model,
    find_model,
    local_folder,
    read_json,
    weights_in,
)

CONFIG = "open_clip_config.json"
#: In the order in which open_clip prefers them.
FILES = (
    *("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors"),
    *("open_clip_pytorch_model.bin", "open_clip_pytorch_model.pth"),
)
OPEN_CLIP = Layout(
    f"For open_clip, a CLIP model is a folder with {CONFIG} and {FILES[0]}",
    ((CONFIG,), FILES),
    (CONFIG, FILES, *TOKENIZERS),
)
QUICK = "-quickgelu"
TOKENIZER_SETTINGS = frozenset({"clean", "strip_sep_token"})  # of the configurations that open_clip ships
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model without its weights. name: for messages. model, image: open_clip's ``model_cfg`` and ``preprocess_cfg``.
    folder: where its own tokenizer may lie.
    """

    name: str
    model: dict[str, Any]
    image: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def __post_init__(self) -> None:
        """Raise `WrongUse` where open_clip would ask a hub, read files of another folder, or hand on what runs code.

        A configuration comes from others: ``tokenizer_kwargs`` go to transformers as they are.
        """
        text, vision = self.model["text_cfg"], self.model["vision_cfg"]
        if not isinstance(text, dict) or not isinstance(vision, dict):
            raise WrongUse(f"open_clip:{self.name}: text_cfg and vision_cfg must be objects; get its file again")
        parts = [part for part in self.model.values() if isinstance(part, dict)]
        image_tower, tokenizer = str(vision.get("timm_model_name") or ""), str(text.get("hf_tokenizer_name") or "")
        options = text.get("tokenizer_kwargs") or {}
        refused = {
            "hf_model_name": next((part["hf_model_name"] for part in parts if part.get("hf_model_name")), ""),
            "timm_model_name": image_tower if ":" in image_tower else "",
            "timm_model_pretrained": vision.get("timm_model_pretrained"),
            "hf_tokenizer_name": tokenizer if ".." in tokenizer or is_model_folder(tokenizer) else "",
            "tokenizer_kwargs": sorted({*options} - TOKENIZER_SETTINGS) if isinstance(options, dict) else options,
        }
        for key, value in refused.items():
            if value:
                raise WrongUse(
                    f"open_clip:{self.name}: {key} is {value!r}, which reads files elsewhere or could run code; remove "
                    "it, or export the model in transformers' layout and name clip:FOLDER"
                )

    def tokenizer(self) -> ModelFiles | None:
        """Its tokenizer of transformers; raises as `local_folder`."""
        if not (name := self.model["text_cfg"].get("hf_tokenizer_name")):
            return None
        folder = self.folder
        if folder is None or not any((folder / file).is_file() for file in TOKENIZERS):
            folder = local_folder(str(name), "It holds a tokenizer")
        words = (*TOKENIZERS, "spiece.model", "sentencepiece.bpe.model", "vocab.txt", "config.json")
        return ModelFiles(folder, tuple(folder / file for file in words if (folder / file).is_file()))


def find_architecture(name: str) -> Architecture:
    """An architecture by open_clip's name, from a JSON file or a folder in its layout, or of a model that an installed
    package brings. Raises `WrongUse`: there is none of this name, or the file is not a configuration.
    """
    path = _model_path(name)
    if path.is_dir():
        path = local_folder(name, OPEN_CLIP.words) / CONFIG
    elif path.suffix != ".json":
        import open_clip  # type: ignore[import-untyped]

        known = open_clip.list_models()
        if (shipped := name.replace("/", "-")) in known:  # open_clip would look for other names on a hub
            return Architecture(name, open_clip.get_model_config(shipped))
        near = ", ".join(get_close_matches(name, [*known, *BROUGHT.kinds()], 3, 0.5)) or "ViT-B-32"
        raise WrongUse(f"no folder or model of open_clip is called {name!r}; near are {near}; or name a JSON of sizes")
    if not path.is_file():
        raise ModelMissing(f"there is no configuration {path}: it is open_clip's JSON of a model's sizes")
    settings = read_json(path)
    model = settings.get("model_cfg", settings)
    if not isinstance(model, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(model):
        raise WrongUse(f"{path}: not a configuration of open_clip: it needs embed_dim, vision_cfg and text_cfg")
    return Architecture(name, model, settings.get("preprocess_cfg") or {}, path.parent)


def _model_path(name: str) -> Path:
    brought = brought_model(name)
    return Path(name) if brought is None else brought.folder


def weights_of_folder(name: str) -> str:
    """The weights in a model's folder, or of one that a package brings; empty where there are none."""
    return str(next(iter(weights_in(_model_path(name), FILES)), ""))


def find_checkpoint(name: str, parts: Sequence[str]) -> tuple[Architecture, Path]:
    """An architecture and the file of its weights: by a name and a tag or a file, or a folder of both.

    Args:
        name: as it was asked for, for messages.
        parts: one or two; see `open_clip_models.open_open_clip`.

    Raises:
        ModelMissing: weights are not on this machine.
        WrongUse: there is no such architecture, or no weights are named.
    """
    architecture = find_architecture(parts[0])
    if len(parts) == 1 and _model_path(parts[0]).is_dir():
        return architecture, next(path for path in find_model(parts[0], OPEN_CLIP).paths if path.name in FILES)
    import open_clip

    checkpoint, shipped = parts[1] if len(parts) > 1 else "", parts[0].replace("/", "-")
    path = Path(checkpoint).expanduser()
    if path.is_file():
        if not architecture.model.get("quick_gelu") and shipped + QUICK in open_clip.list_models():
            # A file does not say its activation. BiVLC's, NegCLIP's and GeneCIS's were all tuned from OpenAI's weights.
            _LOG.warning(
                "%s: runs with GELU; if it was trained from OpenAI's weights, as those of BiVLC, NegCLIP and GeneCIS "
                "were, it needs QuickGELU, and its scores drop without it: write open_clip:%s:FILE",
                *(path, shipped + QUICK),
            )
        return architecture, path
    if facts := open_clip.get_pretrained_cfg(shipped, checkpoint):
        return _tagged(architecture, checkpoint, facts)
    tags = open_clip.list_pretrained_tags_by_model(shipped)
    near = get_close_matches(checkpoint, tags, 3, 0.5) or tags[:6]
    problem = ModelMissing if checkpoint else WrongUse
    raise problem(
        f"--model {name}: names no weights, neither a file here nor a tag; write open_clip:{parts[0]}:FILE, or one of "
        f"its tags for FILE ({', '.join(near) or 'it has none'}), or random:{parts[0]} for random ones"
    )


def _tagged(architecture: Architecture, tag: str, facts: Mapping[str, Any]) -> tuple[Architecture, Path]:
    """Published weights in the Hugging Face cache, with the activation and the transform that open_clip knows of."""
    name, model, quick = architecture.name, architecture.model, bool(facts.get("quick_gelu"))
    if quick != bool(model.get("quick_gelu")):
        model = {**model, "quick_gelu": quick}
        activation = "QuickGELU" if quick else "GELU"
        _LOG.warning("open_clip:%s:%s: runs with %s, as these weights need", name, tag, activation)
    repository, _, file = str(facts["hf_hub"]).rpartition("/")
    weights = (file,) if file else FILES
    files = find_model(repository, Layout("It holds open_clip's weights", (weights,), (weights,)))
    image = {key: facts[key] for key in ("mean", "std", "interpolation", "resize_mode") if facts.get(key)}
    return Architecture(f"{name} ({tag})", model, image, files.folder), files.paths[0]
