"""Dual encoders of open_clip: shipped architectures and own ones, with published tags, local checkpoints or random
weights. Images go through open_clip's own evaluation transform."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.scorers.checkpoints import Weights, fit, read_weights
from evaluation.scorers.contract import DualEncoder, Floats, Running
from manifests.canonical import digest
from manifests.errors import WrongUse
from shards.models.files import ModelMissing, local_folder, read_json, sha256_once
from shards.models.loading import loading

if TYPE_CHECKING:
    from PIL.Image import Image

CONFIG = "open_clip_config.json"
#: In the order in which open_clip prefers them.
FILES = (
    *("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors"),
    *("open_clip_pytorch_model.bin", "open_clip_pytorch_model.pth"),
)
QUICK = "-quickgelu"
MOST_DIGITS = 18  # of a seed, which torch takes as 64 bits
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model without its weights.

    name: for messages. model, image: open_clip's ``model_cfg`` and ``preprocess_cfg``.
    """

    name: str
    model: dict[str, Any]
    image: Mapping[str, Any] = field(default_factory=dict)


class OpenClip(DualEncoder):
    """A model of open_clip in float32.

    weights: digest of its checkpoint.
    """

    def __init__(self, name: str, architecture: Architecture, weights: str, network: Any, tokens: Any) -> None:
        import open_clip  # type: ignore[import-untyped]

        self.name = name
        self._network, self._tokens = network, tokens
        settings = open_clip.transform.PreprocessCfg(**network.visual.preprocess_cfg)
        self._transform = open_clip.transform.image_transform_v2(settings, is_train=False)
        self._device = next(network.parameters()).device
        libraries = {one: version(one) for one in ("torch", "open_clip_torch", "torchvision", "pillow", "numpy")}
        model = {key: architecture.model[key] for key in sorted(architecture.model)}
        facts = {"image": dict(network.visual.preprocess_cfg), "libraries": libraries, "precision": "float32"}
        self._digest = digest(json.loads(json.dumps({"weights": weights, "model": model, **facts}, default=str)))

    def digest(self) -> str:
        """As `Scorer.digest`."""
        return self._digest

    def prepare(self, image: Image) -> Floats:
        """As `DualEncoder.prepare`."""
        return np.asarray(self._transform(image).numpy(), np.float32)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        """As `DualEncoder.image_features`."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(self._device)
            features: Floats = self._network.encode_image(pixels).float().cpu().numpy()
        return features

    def text_features(self, texts: Sequence[str]) -> Floats:
        """As `DualEncoder.text_features`."""
        import torch

        with torch.inference_mode():
            features: Floats = (
                self._network.encode_text(self._tokens(list(texts)).to(self._device)).float().cpu().numpy()
            )
        return features


def open_open_clip(name: str, parts: Sequence[str], running: Running) -> OpenClip:
    """``open_clip:NAME:TAG``, ``open_clip:NAME:FILE``, ``open_clip:CONFIG.json:FILE``, ``open_clip:FOLDER``."""
    architecture, checkpoint = find_architecture(parts[0]), parts[1] if len(parts) > 1 else ""
    if Path(parts[0]).is_dir() and not checkpoint:
        folder = Path(parts[0])
        checkpoint = str(next((folder / file for file in FILES if (folder / file).is_file()), ""))
        if not checkpoint:
            raise ModelMissing(f"{folder}: lacks {' or '.join(FILES[::2])}: put the weights there")
    if not checkpoint:
        raise WrongUse(
            f"--model {name}: names no weights; write open_clip:{parts[0]}:TAG with {_tags(parts[0])}, or "
            f"open_clip:{parts[0]}:FILE, or random:{parts[0]} for random ones"
        )
    architecture, path = _tagged(architecture, parts[0], checkpoint) or _local(architecture, parts[0], checkpoint)
    network, tokens = _build(architecture)
    fit(network, _converted(network, read_weights(path)), path, architecture.name)
    device = running.start()
    return OpenClip(name, architecture, sha256_once(path), network.to(device).eval(), tokens)


def open_random(name: str, parts: Sequence[str], running: Running) -> OpenClip:
    """``random:NAME[:SEED]`` or ``random:CONFIG.json[:SEED]``: an architecture with random weights from a seed."""
    import torch

    seed = parts[1] if len(parts) > 1 else "0"
    if not seed.isascii() or not seed.isdigit() or len(seed) > MOST_DIGITS:
        raise WrongUse(f"--model {name}: {seed!r} is not a seed; write random:{parts[0]}:0, or at most 18 digits")
    architecture = find_architecture(parts[0])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        network, tokens = _build(architecture)
    _LOG.warning("%s: random weights: its scores are those of chance, more or less", name)
    return OpenClip(name, architecture, f"random {seed}", network.to(running.start()).eval(), tokens)


def find_architecture(name: str) -> Architecture:
    """An architecture by open_clip's name, or from a JSON file or a folder in its layout.

    Raises:
        WrongUse: there is none of this name; near ones are suggested. Or the file is not a configuration.
    """
    import open_clip

    path = Path(name)
    if path.suffix == ".json" or path.is_dir():
        path = path / CONFIG if path.is_dir() else path
        if not path.is_file():
            raise ModelMissing(f"there is no configuration {path}: it is open_clip's JSON of a model's sizes")
        found = read_json(path)
        model = found.get("model_cfg", found)
        if not isinstance(model, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(model):
            raise WrongUse(f"{path}: not a configuration of open_clip: it needs embed_dim, vision_cfg and text_cfg")
        return Architecture(name, model, found.get("preprocess_cfg") or {})
    model = open_clip.get_model_config(name.replace("/", "-")) if ":" not in name else None
    if model is None:
        near = get_close_matches(name, open_clip.list_models(), 3, 0.5)
        hint = f"near are {', '.join(near)}" if near else "such as ViT-B-32"
        raise WrongUse(f"open_clip has no model {name!r}: {hint}; or name a JSON file of its sizes")
    return Architecture(name, model)


def _tags(name: str) -> str:
    import open_clip

    tags = open_clip.list_pretrained_tags_by_model(name)
    return f"one of {', '.join(tags[:6])}" if tags else "a tag (open_clip has none for it)"


def _tagged(architecture: Architecture, name: str, tag: str) -> tuple[Architecture, Path] | None:
    """Published weights in the Hugging Face cache, with the activation and the transform that they need."""
    import open_clip

    if Path(tag).exists() or not (facts := open_clip.get_pretrained_cfg(name.replace("/", "-"), tag)):
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
    return Architecture(f"{name} ({tag})", model, image), found


def _local(architecture: Architecture, name: str, checkpoint: str) -> tuple[Architecture, Path]:
    import open_clip

    path = Path(checkpoint).expanduser()
    if not path.exists():
        tags = open_clip.list_pretrained_tags_by_model(name)
        near = get_close_matches(checkpoint, tags, 3, 0.5)
        hint = f"near are the tags {', '.join(near)}" if near else f"it takes {_tags(name)}, or a file"
        raise ModelMissing(f"open_clip:{name}:{checkpoint}: neither a tag of {name} nor a file here; {hint}")
    if not architecture.model.get("quick_gelu") and f"{name}{QUICK}" in open_clip.list_models():
        # A file does not say its activation. BiVLC's, NegCLIP's and GeneCIS's were all tuned from OpenAI's weights.
        _LOG.warning(
            "%s: runs with GELU; if it was trained from OpenAI's weights, as those of BiVLC, NegCLIP and GeneCIS were, "
            "it needs QuickGELU, and its scores drop without it: write open_clip:%s%s:FILE",
            *(path, name, QUICK),
        )
    return architecture, path


def _build(architecture: Architecture) -> tuple[Any, Any]:
    """A network with random weights and its tokenizer; nothing is downloaded."""
    import open_clip

    model = deepcopy(architecture.model)
    if model["text_cfg"].get("hf_model_name"):
        raise WrongUse(
            f"open_clip:{architecture.name}: its text tower is built from another model's files; export it in "
            "transformers' layout and name clip:FOLDER"
        )
    tokenizer = model["text_cfg"].get("hf_tokenizer_name")
    with tempfile.TemporaryDirectory() as made:
        said = {"model_cfg": model, "preprocess_cfg": dict(architecture.image)}
        (Path(made) / CONFIG).write_text(json.dumps(said), "utf-8")
        source = Path(made)
        if tokenizer:  # open_clip looks for it beside the configuration
            for file in local_folder(tokenizer, "It holds a tokenizer").iterdir():
                if file.suffix in (".json", ".model", ".txt"):
                    (source / file.name).symlink_to(file.resolve())
        with loading(Path(architecture.name)), _silent():
            network = open_clip.create_model(f"local-dir:{source}", load_weights=False, pretrained_text=False)
            tokens = open_clip.get_tokenizer(f"local-dir:{source}")
    return network, tokens


@contextmanager
def _silent() -> Iterator[None]:
    """open_clip warns that a network without weights is random; its weights are loaded right after."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _converted(network: Any, weights: Weights) -> Weights:
    """Weights of other libraries in open_clip's names, where it knows how; others as they are."""
    from open_clip.convert import convert_state_dict  # type: ignore[import-untyped]
    from open_clip.model import convert_to_custom_text_state_dict  # type: ignore[import-untyped]

    weights = convert_state_dict(network, weights)
    if "positional_embedding" in weights and not hasattr(network, "positional_embedding"):
        weights = convert_to_custom_text_state_dict(weights)
    return weights
