"""What a run opens: its model, as evaluation does, and examples to train and validate by, which share no group."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.open_clip_files import CONFIG, Architecture, find_architecture, find_checkpoint
from twinset.models.encoders.open_clip_models import load_network, random_network
from twinset.models.files import sha256_once
from twinset.shards.storage.whole_file import write_text
from twinset.training.examples.contracts import Twins
from twinset.training.examples.example_set import TAR_INDEX, ExampleSet, open_examples
from twinset.training.runs.settings import EncoderSettings, RunSettings

SHOWN = 3  # names in a message
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Start:
    """A model of open_clip before its first step.

    tokenize: texts to int64 tokens (n, length). weights: sha256 of the file, or ``random SEED``.
    """

    network: Any
    tokenize: Any
    architecture: Architecture
    weights: str

    def config(self) -> dict[str, Any]:
        """What ``open_clip_config.json`` has: layers, and how images are read."""
        return {"model_cfg": dict(self.architecture.model), "preprocess_cfg": dict(self.network.visual.preprocess_cfg)}

    def digests(self) -> dict[str, str]:
        """What decides the weights at the first step."""
        return {"model": digest(json.loads(json.dumps(self.config(), default=str))), "weights": self.weights}

    def write_config(self, out: Path) -> None:
        """Write ``open_clip_config.json``, with which open_clip and `evaluation` open the weights beside it."""
        write_text(out / CONFIG, json.dumps(self.config(), indent=1, sort_keys=True, default=str) + "\n")


def open_start(settings: EncoderSettings) -> Start:
    """The model that settings name, on the CPU in float32. Raises `WrongUse`: there is no such model."""
    if settings.weights is None:
        architecture = find_architecture(settings.model)
        return Start(*random_network(architecture, settings.seed), architecture, f"random {settings.seed}")
    name = f"open_clip:{settings.model}:{settings.weights}"
    architecture, path = find_checkpoint(name, (settings.model, settings.weights))
    network, tokenize = load_network(architecture, path)
    return Start(network.float(), tokenize, architecture, sha256_once(path))


@dataclass(frozen=True, slots=True)
class RunData:
    """Examples of a run. validation: an `ExampleSet`, or queries of a Combiner; None where none is named."""

    training: ExampleSet
    validation: Any

    def digests(self) -> dict[str, str | None]:
        """sha256 over receipts or tars of each."""
        return {"data": self.training.digest(), "validation": self.validation.digest() if self.validation else None}

    def facts(self) -> dict[str, Any]:
        """Every dataset and shard as JSON; a released benchmark has none."""
        return {"data": self.training.facts(), "validation": getattr(self.validation, "facts", list)()}


def open_data(settings: RunSettings, twins: Twins, out: Path) -> RunData:
    """Open the datasets of a run. Raises `WrongUse`: one cannot be read; or training and validation share a group: a
    video, a scene, an image.

    Args:
        twins: sides of a pair that are trained on.
        out: folder of the run; indices of tars lie beside it.
    """
    index = out.absolute().parent / TAR_INDEX
    training = open_examples(settings.data, "pairs", settings.split, twins, index)
    if not settings.validation:
        return RunData(training, None)
    validation = open_examples(settings.validation, "pairs", settings.validation_split, "first", index)
    refuse_shared(training, validation)
    return RunData(training, validation)


def refuse_shared(training: ExampleSet, validation: ExampleSet) -> None:
    """Raise `WrongUse` where both have a group; warn of images that both have."""
    remedy = "name another validation subset, or separate them with --split and --validation-split"
    if shared := sorted(training.groups() & validation.groups()):
        named = f"{len(shared):,} groups or tars of it are trained on too, such as {', '.join(shared[:SHOWN])}"
        raise WrongUse(f"validation: {named}; {remedy}")
    if images := training.hashes() & validation.hashes():  # black frames of different videos are alike too
        _LOG.warning("validation: %s images of it are trained on too, byte by byte; %s", f"{len(images):,}", remedy)
