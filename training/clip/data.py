"""What a run reads: examples to train on and to validate by, which share no group."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.manifests.errors import WrongUse
from twinset.training.examples.contracts import Twins
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.runs.settings import RunSettings

SHOWN = 3  # names in a message
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class RunData:
    """Examples of a run. validation: None where the settings name none."""

    training: ExampleSet
    validation: ExampleSet | None

    def digests(self) -> dict[str, str | None]:
        """sha256 over receipts or tars of each."""
        return {
            "data": self.training.digest(),
            "validation": None if self.validation is None else self.validation.digest(),
        }

    def facts(self) -> dict[str, Any]:
        """Every dataset and shard as JSON."""
        return {
            "data": self.training.facts(),
            "validation": [] if self.validation is None else self.validation.facts(),
        }


def open_data(settings: RunSettings, twins: Twins) -> RunData:
    """Open the datasets of a run.

    Args:
        twins: sides of a pair that are trained on.

    Raises:
        WrongUse: one cannot be read; or training and validation share a group: a video, a scene, an image.
    """
    training = open_examples(settings.data, "pairs", settings.split, twins)
    if not settings.validation:
        return RunData(training, None)
    validation = open_examples(settings.validation, "pairs", settings.validation_split, twins="first")
    _refuse_shared(training, validation)
    return RunData(training, validation)


def _refuse_shared(training: ExampleSet, validation: ExampleSet) -> None:
    shared = sorted(set(_groups(training)) & set(_groups(validation)))
    remedy = "name another validation subset, or separate them with --split and --validation-split"
    if shared:
        named = ", ".join(shared[:SHOWN]) + (", …" if len(shared) > SHOWN else "")
        raise WrongUse(f"validation: {len(shared):,} groups of it are trained on too ({named}); {remedy}")
    images = np.intersect1d(_images(training), _images(validation))
    if len(images):  # black frames of different videos are alike too
        _LOG.warning("validation: %s images of it are trained on too, byte by byte; %s", f"{len(images):,}", remedy)


def _groups(examples: ExampleSet) -> list[str]:
    dictionaries = [pa.compute.unique(part.columns.groups).to_pylist() for part in examples.parts]
    return [group for groups in dictionaries for group in groups]


def _images(examples: ExampleSet) -> NDArray[np.uint64]:
    """Starts of the sha256 of all images that are there."""
    found = [slices.hashes[slices.sizes > 0] for part in examples.parts for slices in part.columns.images.values()]
    return np.unique(np.concatenate(found))
