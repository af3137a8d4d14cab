"""What a run opens: its model, as evaluation does, and examples to train and validate by, which share no group."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.open_clip_files import CONFIG, Architecture, find_architecture, find_checkpoint
from twinset.models.encoders.open_clip_models import load_network, random_network
from twinset.models.files import sha256_once
from twinset.shards.storage.whole_file import write_text
from twinset.training.examples.contracts import Twins
from twinset.training.examples.example_set import TAR_INDEX, ExampleSet, open_examples
from twinset.training.examples.neighbours import ImageNeighbours, open_image_neighbours
from twinset.training.runs.settings import EncoderSettings, RunSettings


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
        image = as_json(self.network.visual.preprocess_cfg)
        return {"architecture": as_json(self.architecture.model), "image": image, "weights": self.weights}


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


SHOWN = 3  # names in a message
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class RunData:
    """Examples of a run, and the neighbours of their images. validation, neighbours: None where none are named."""

    training: ExampleSet
    validation: ExampleSet | None
    neighbours: ImageNeighbours | None = None

    def digests(self) -> dict[str, str | None]:
        """sha256 over receipts or tars of each, and of the table of neighbours."""
        found = {
            "data": self.training.digest(),
            "validation": None if self.validation is None else self.validation.digest(),
        }
        return found if self.neighbours is None else found | {"neighbours": self.neighbours.digest}

    def facts(self) -> dict[str, Any]:
        """Every dataset and shard as JSON."""
        return {"data": self.training.facts(), "validation": [] if self.validation is None else self.validation.facts()}


def open_data(
    settings: RunSettings, twins: Twins, index: Path = TAR_INDEX, neighbours: str | None = None, nearest: int = 0
) -> RunData:
    """Open the datasets of a run.

    Args:
        twins: sides of a pair that are trained on.
        index: folder where indices of tars are written.
        neighbours, nearest: as `open_image_neighbours` takes them, where a table is named.

    Raises:
        WrongUse: one cannot be read; or training and validation share a group: a video, a scene, an image.
    """
    training = open_examples(settings.data, "pairs", settings.split, twins, index)
    near = open_image_neighbours(neighbours, training, nearest) if neighbours else None
    if not settings.validation:
        return RunData(training, None, near)
    validation = open_examples(settings.validation, "pairs", settings.validation_split, "first", index)
    _refuse_shared(training, validation)
    return RunData(training, validation, near)


def _refuse_shared(training: ExampleSet, validation: ExampleSet) -> None:
    shared = sorted(_groups(training) & _groups(validation))
    remedy = "name another validation subset, or separate them with --split and --validation-split"
    if shared:
        named = ", ".join(shared[:SHOWN]) + (", …" if len(shared) > SHOWN else "")
        raise WrongUse(f"validation: {len(shared):,} groups or tars of it are trained on too ({named}); {remedy}")
    images = np.intersect1d(_images(training), _images(validation))
    if len(images):  # black frames of different videos are alike too
        _LOG.warning("validation: %s images of it are trained on too, byte by byte; %s", f"{len(images):,}", remedy)


def _groups(examples: ExampleSet) -> set[str]:
    return {name for part in examples.parts for name in part.names()}


def _images(examples: ExampleSet) -> NDArray[np.uint64]:
    """Starts of the sha256 of all images that are there."""
    found = [slices.hashes[slices.hashes > 0] for part in examples.parts for slices in part.columns.images.values()]
    return np.unique(np.concatenate(found))
