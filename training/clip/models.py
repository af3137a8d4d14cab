"""The model of a run: opened as evaluation opens it, and described so that evaluation can open what was trained."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.models.encoders.open_clip_files import CONFIG, Architecture, find_architecture, find_checkpoint
from twinset.models.encoders.open_clip_models import load_network, random_network
from twinset.models.files import sha256_once
from twinset.shards.storage.whole_file import write_text
from twinset.training.runs.settings import EncoderSettings


@dataclass(frozen=True, slots=True)
class Start:
    """A model before its first step.

    tokenize: texts to int64 tokens (n, length). weights: sha256 of the file, or ``random SEED``.
    """

    network: Any
    tokenize: Any
    architecture: Architecture
    weights: str

    def identity(self) -> dict[str, Any]:
        """What decides the weights at the first step, as JSON."""
        found: dict[str, Any] = json.loads(json.dumps(dict(self.architecture.model), default=str, sort_keys=True))
        return {"architecture": found, "image": as_json(self.network.visual.preprocess_cfg), "weights": self.weights}


def open_start(settings: EncoderSettings) -> Start:
    """The model that settings name, on the CPU in float32. Raises `WrongUse`: there is no such architecture or
    checkpoint, or they do not fit.
    """
    if settings.weights is None:
        architecture = find_architecture(settings.model)
        network, tokenize = random_network(architecture, settings.seed)
        return Start(network, tokenize, architecture, f"random {settings.seed}")
    name = f"open_clip:{settings.model}:{settings.weights}"
    architecture, path = find_checkpoint(name, (settings.model, settings.weights))
    network, tokenize = load_network(architecture, path)
    return Start(network.float(), tokenize, architecture, sha256_once(path))


def write_config(start: Start, out: Path) -> None:
    """Write ``open_clip_config.json``, with which open_clip and `evaluation` open the weights beside it."""
    image = as_json(start.network.visual.preprocess_cfg)
    said = {"model_cfg": dict(start.architecture.model), "preprocess_cfg": image}
    write_text(out / CONFIG, json.dumps(said, indent=1, sort_keys=True, default=str) + "\n")


def as_json(settings: Any) -> dict[str, Any]:
    """Settings of open_clip with lists for tuples."""
    found: dict[str, Any] = json.loads(json.dumps(dict(settings), default=str, sort_keys=True))
    return found
