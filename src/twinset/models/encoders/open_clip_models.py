"""Dual encoders of open_clip: shipped architectures and own ones, with published tags, local checkpoints or random
weights. Images go through open_clip's own evaluation transform."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.checkpoints import Weights, fit, read_weights
from twinset.models.encoders.contract import DualEncoder, Floats, ModelKind, Running, maybe_longer
from twinset.models.encoders.open_clip_files import (
    CONFIG,
    TOKENIZER_SETTINGS,
    Architecture,
    find_architecture,
    find_checkpoint,
)
from twinset.models.files import files_digest, sha256_once
from twinset.models.loading import NO_CODE, loading
from twinset.shards.storage.spool import temporary_folder

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_DIGITS = 18  # of a seed, which torch takes as 64 bits
_LOG = logging.getLogger("twinset")


class OpenClip(DualEncoder):
    """A model of open_clip in float32.

    weights: digest of its checkpoint.
    """

    def __init__(self, name: str, architecture: Architecture, weights: str, network: Any, tokens: Any) -> None:
        import open_clip  # type: ignore[import-untyped]

        self.name = name
        self._network, self._tokens = network, tokens
        with loading(Path(architecture.name)):
            settings = open_clip.transform.PreprocessCfg(**network.visual.preprocess_cfg)
            self._transform = open_clip.transform.image_transform_v2(settings, is_train=False)
        self._device = next(network.parameters()).device
        libraries = {one: version(one) for one in ("torch", "open_clip_torch", "torchvision", "pillow", "numpy")}
        model = {key: architecture.model[key] for key in sorted(architecture.model)}
        facts = {"image": dict(network.visual.preprocess_cfg), "libraries": libraries, "precision": "float32"}
        if (words := architecture.tokenizer()) is not None:
            facts["tokenizer"] = files_digest(words[1])
        self._digest = digest(json.loads(json.dumps({"weights": weights, "model": model, **facts}, default=str)))

    def digest(self) -> str:
        return self._digest

    def prepare(self, image: Image) -> Floats:
        return np.asarray(self._transform(image).numpy(), np.float32)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(prepared)).to(self._device)
            features: Floats = self._network.encode_image(pixels).float().cpu().numpy()
        return features

    def text_features(self, texts: Sequence[str]) -> Floats:
        import torch

        with torch.inference_mode():
            features: Floats = (
                self._network.encode_text(self._tokens(list(texts)).to(self._device)).float().cpu().numpy()
            )
        return features

    def too_long(self, texts: Sequence[str]) -> list[str]:
        most = int(self._network.context_length)
        if not (some := maybe_longer(texts, most)):
            return []
        # More of a text is read where there is room for twice as many tokens; marks and filling do not count.
        marks = self._tokens([""], most)[0].unique().tolist()
        short, whole = (
            [sum(token not in marks for token in row) for row in self._tokens(some, room).tolist()]
            for room in (most, 2 * most)
        )
        return [text for text, read, there in zip(some, short, whole, strict=True) if there > read]


def open_open_clip(name: str, parts: Sequence[str], running: Running) -> OpenClip:
    """``open_clip:NAME:TAG``, ``open_clip:NAME:FILE``, ``open_clip:CONFIG.json:FILE``, ``open_clip:FOLDER``."""
    architecture, path = find_checkpoint(name, parts)
    network, tokens = load_network(architecture, path)
    device = running.start()
    return OpenClip(name, architecture, sha256_once(path), network.to(device).eval(), tokens)


def load_network(architecture: Architecture, path: Path, precision: str = "fp32") -> tuple[Any, Any]:
    """A network with the weights of a file, and its tokenizer; raises `WrongUse` where they do not fit.

    Args:
        precision: open_clip's name of it.
    """
    network, tokens = _build(architecture, precision)
    fit(network, _converted(network, read_weights(path)), path, architecture.name)
    return network, tokens


def random_network(architecture: Architecture, seed: int) -> tuple[Any, Any]:
    """A network with random weights from a seed, and its tokenizer; torch's own random state stays as it is."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build(architecture)


def open_random(name: str, parts: Sequence[str], running: Running) -> OpenClip:
    """``random:NAME[:SEED]`` or ``random:CONFIG.json[:SEED]``: an architecture with random weights from a seed."""
    architecture, seed = _find_random(name, parts)
    network, tokens = random_network(architecture, int(seed))
    _warn_random(parts[0])
    return OpenClip(name, architecture, f"random {seed}", network.to(running.start()).eval(), tokens)


def _find_random(name: str, parts: Sequence[str]) -> tuple[Architecture, str]:
    seed = parts[1] if len(parts) > 1 else "0"
    if not seed.isascii() or not seed.isdigit() or len(seed) > MOST_DIGITS:
        raise WrongUse(f"--model {name}: {seed!r} is not a seed; write random:{parts[0]}:0, or at most 18 digits")
    return find_architecture(parts[0]), seed


@cache
def _warn_random(architecture: str) -> None:
    """Once a process: rules such as image+text open the same encoder again."""
    _LOG.warning("random:%s: random weights: its scores are those of chance, more or less", architecture)


def _build(architecture: Architecture, precision: str = "fp32") -> tuple[Any, Any]:
    """A network with random weights and its tokenizer; nothing is downloaded."""
    import open_clip

    architecture.check()
    text = architecture.model["text_cfg"]
    own = {key: value for key, value in (text.get("tokenizer_kwargs") or {}).items() if key in TOKENIZER_SETTINGS}
    own["context_length"] = text.get("context_length", open_clip.tokenizer.DEFAULT_CONTEXT_LENGTH)
    with temporary_folder() as made, loading(Path(architecture.name)), _silent():
        said = {"model_cfg": architecture.model, "preprocess_cfg": dict(architecture.image)}
        (made / CONFIG).write_text(json.dumps(said), "utf-8")
        network = open_clip.create_model(
            f"local-dir:{made}", load_weights=False, pretrained_text=False, precision=precision
        )
        if (found := architecture.tokenizer()) is not None:
            own |= {"tokenizer_mode": text.get("tokenizer_mode"), "local_files_only": True, **NO_CODE}
            return network, open_clip.tokenizer.HFTokenizer(str(found[0]), **own)
        return network, open_clip.SimpleTokenizer(**own)


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


OPEN_CLIP = ModelKind(open_open_clip, "NAME:TAG|FILE, or FOLDER", 2, find_checkpoint)
RANDOM = ModelKind(
    open_random,
    "NAME[:SEED]",
    2,
    _find_random,
    note="Its weights are random: its figures are those of an untrained model.",
)
