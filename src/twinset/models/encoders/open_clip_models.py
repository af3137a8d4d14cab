"""Dual encoders of open_clip: shipped architectures and own ones, with published tags, local checkpoints or random
weights. Images go through open_clip's own evaluation transform."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.models.device import load_within_memory
from twinset.models.encoders.checkpoints import fit, read_weights
from twinset.models.encoders.contract import DualEncoder, Floats, ModelKind, Running, as_floats
from twinset.models.encoders.open_clip_files import Architecture, find_architecture, find_checkpoint
from twinset.models.files import sha256_once
from twinset.models.loading import NO_CODE, loading

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_DIGITS = 18  # of a seed, which torch takes as 64 bits


class OpenClip(DualEncoder):
    """A model of open_clip in float32. weights: digest of its checkpoint."""

    def __init__(self, name: str, architecture: Architecture, weights: str, network: Any, tokens: Any) -> None:
        import open_clip  # type: ignore[import-untyped]

        self.name = name
        self._network, self._tokens = network, tokens
        with loading(Path(architecture.name)):
            settings = open_clip.transform.PreprocessCfg(**network.visual.preprocess_cfg)
            self._transform = open_clip.transform.image_transform_v2(settings, is_train=False)
        self._device = next(network.parameters()).device
        libraries = {name: version(name) for name in ("torch", "open_clip_torch", "torchvision", "pillow", "numpy")}
        facts = {"weights": weights, "model": architecture.model, "image": network.visual.preprocess_cfg}
        facts |= {"libraries": libraries, "precision": "float32"}
        if (words := architecture.tokenizer()) is not None:
            facts["tokenizer"] = words.digest()
        self._digest = digest(json.loads(json.dumps(facts, default=str)))

    def digest(self) -> str:
        return self._digest

    def prepare(self, image: Image) -> Floats:
        return np.asarray(self._transform(image).numpy(), np.float32)

    def image_features(self, prepared: Sequence[Floats]) -> Floats:
        import torch

        with torch.inference_mode():
            return as_floats(self._network.encode_image(torch.from_numpy(np.stack(prepared)).to(self._device)))

    def text_features(self, texts: Sequence[str]) -> Floats:
        import torch

        with torch.inference_mode():
            return as_floats(self._network.encode_text(self._tokens(list(texts)).to(self._device)))

    def too_long(self, texts: Sequence[str]) -> list[str]:
        most = int(self._network.context_length)
        marks = self._tokens([""], most)[0].unique().tolist()
        # A token is a byte or more. More of a text is read where there is room for twice as many.
        long = [text for text in texts if len(text.encode("utf-8", "surrogatepass")) + 3 > most]
        if not long:
            return []
        rows = (self._tokens(long, room).tolist() for room in (most, 2 * most))
        read, whole = ([sum(token not in marks for token in row) for row in each] for each in rows)
        return [text for text, part, all_of_it in zip(long, read, whole, strict=True) if all_of_it > part]


def open_open_clip(name: str, parts: Sequence[str], running: Running) -> OpenClip:
    """``open_clip:NAME:TAG``, ``open_clip:NAME:FILE``, ``open_clip:CONFIG.json:FILE``, ``open_clip:FOLDER``."""
    architecture, path = find_checkpoint(name, parts)
    network, tokens = load_network(architecture, path)
    return OpenClip(name, architecture, sha256_once(path), network.to(running.start()).eval(), tokens)


def load_network(architecture: Architecture, path: Path) -> tuple[Any, Any]:
    """A network with the weights of a file, and its tokenizer; raises `WrongUse` where they do not fit."""
    network, tokens = load_within_memory(architecture.name, partial(_build, architecture))
    fit(network, read_weights(path), path, architecture.name)
    return network, tokens


def random_network(architecture: Architecture, seed: int) -> tuple[Any, Any]:
    """A network with random weights from a seed, and its tokenizer; torch's own random state stays as it is."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load_within_memory(architecture.name, partial(_build, architecture))


def open_random(name: str, parts: Sequence[str], running: Running) -> OpenClip:
    """``random:NAME[:SEED]`` or ``random:CONFIG.json[:SEED]``: an architecture with random weights from a seed."""
    architecture, seed = _find_random(name, parts)
    network, tokens = random_network(architecture, int(seed))
    return OpenClip(name, architecture, f"random {seed}", network.to(running.start()).eval(), tokens)


def _find_random(name: str, parts: Sequence[str]) -> tuple[Architecture, str]:
    seed = parts[1] if len(parts) > 1 else "0"
    if not seed.isascii() or not seed.isdigit() or len(seed) > MOST_DIGITS:
        raise WrongUse(f"--model {name}: {seed!r} is not a seed; write random:{parts[0]}:0, or at most 18 digits")
    return find_architecture(parts[0]), seed


def _build(architecture: Architecture) -> tuple[Any, Any]:
    """A network with random weights and its tokenizer; nothing is downloaded."""
    import open_clip

    sizes, text = deepcopy(architecture.model), architecture.model["text_cfg"]
    kind = open_clip.CustomTextCLIP if sizes.pop("custom_text", False) else open_clip.CLIP
    kind = open_clip.CoCa if "multimodal_cfg" in sizes else kind
    options = {**(text.get("tokenizer_kwargs") or {})}
    options["context_length"] = text.get("context_length", open_clip.tokenizer.DEFAULT_CONTEXT_LENGTH)
    with loading(Path(architecture.name)):
        network = kind(**sizes)
        image = open_clip.transform.merge_preprocess_dict(open_clip.transform.PreprocessCfg(), architecture.image)
        open_clip.set_model_preprocess_cfg(network, {**image, "size": network.visual.image_size})
        if (words := architecture.tokenizer()) is None:
            return network, open_clip.SimpleTokenizer(**options)
        options |= {"tokenizer_mode": text.get("tokenizer_mode"), "local_files_only": True, **NO_CODE}
        return network, open_clip.tokenizer.HFTokenizer(str(words.folder), **options)


OPEN_CLIP = ModelKind(open_open_clip, "NAME:TAG|FILE, or FOLDER", 2, find_checkpoint)
NOTE = "Its weights are random: its figures are those of an untrained model."
RANDOM = ModelKind(open_random, "NAME[:SEED]", 2, _find_random, note=NOTE)
