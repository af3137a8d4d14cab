"""The neighbours of a run's examples, found and scored once before its first step and kept in its folder (EqBen C); and
what a step reads: examples with negatives sampled from these, in parts, as a pure function of seed and step.
"""

import contextlib
import logging
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor
from torch.nn import functional

from twinset.contracts.canonical import digest, generator_for
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.generators.neighbours.source import nearest
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.contracts import Read
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.neighbours import image_numbers
from twinset.training.examples.ordering import augmentation_seed, order
from twinset.training.examples.transforms import random_crop
from twinset.training.examples.workers import made_ahead
from twinset.training.fusion.models import PASS, Start
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.mining import (
    Labels,
    Neighbours,
    load_neighbours,
    negatives_of_all,
    sample_negatives,
    score_neighbours,
    texts_of_neighbours,
)
from twinset.training.losses.names import ABSENT
from twinset.training.runs.steps import stream_seed

FILE = "neighbours.safetensors"
PAIRS = 256  # scored at a time, or those of one image
AHEAD = 4  # parts that a worker prepares before they are asked for
_LOG = logging.getLogger("twinset")


def labels_of(examples: ExampleSet, settings: FusionSettings) -> Labels:
    """Which image and which text each example has, (2, n): those that share either match each other too. Raises
    `WrongUse`: some example has too few others that differ in both.
    """
    examples.require(("image", "text"))
    texts = np.array([examples[number].texts["text"] for number in range(len(examples))])
    labels = np.stack([image_numbers(examples)[1], np.unique(texts, return_inverse=True)[1]]).astype(np.int64)
    if len(examples) < settings.batch or negatives_of_all(labels) < settings.negatives:
        raise WrongUse(
            f"{len(examples):,} examples, of which {max(negatives_of_all(labels), 0):,} or more differ from any one in "
            f"image and text: too few for a batch of {settings.batch:,} or {settings.negatives} negatives; choose a "
            "smaller --batch, --negatives and --hard, or name more data"
        )
    return labels


def open_neighbours(
    settings: FusionSettings, out: Path, start: Start, examples: ExampleSet, labels: Labels
) -> Neighbours:
    """The neighbours that ``out`` has of these examples by this model; where there are none, find them by its image
    tower and score all their texts by its matching head.

    Raises:
        WrongUse: those that are there are of others, or fewer than are to be hard.
        BuildFailed: an image cannot be read.
    """
    path, bound_to = out / FILE, digest([examples.digest(), start.files.digest(), settings.nearest])
    if path.exists():
        return load_neighbours(path, bound_to)
    firsts = np.unique(labels[0], return_index=True)[1]  # an example of each image

    def pixels(images: NDArray[np.int64]) -> dict[str, Tensor]:
        return start.scorer.pixels([opened(examples, int(firsts[image])) for image in images])

    def score(images: Tensor, of_texts: Tensor) -> Tensor:
        (shown, which), (numbers, what) = (
            np.unique(places, return_inverse=True) for places in (labels[0, images.numpy()], of_texts.numpy())
        )
        texts = [examples[int(number)].texts["text"] for number in numbers]
        return start.read(pixels(shown), texts)(torch.from_numpy(which), torch.from_numpy(what))

    torch.manual_seed(stream_seed(settings.seed, "neighbours"))  # ViLT reads patches in a random order
    with torch.inference_mode():
        passes = np.split(np.arange(len(firsts)), range(PASS, len(firsts), PASS))
        features = torch.cat([start.scorer.image_features(pixels(images)).float() for images in passes])
        near = nearest(functional.normalize(features, dim=-1), settings.nearest)[0].cpu().numpy().astype(np.int32)
        texts = texts_of_neighbours(near, labels)
        if (fewest := int((texts != ABSENT).sum(axis=1).min())) < settings.hard:
            raise WrongUse(f"hard: {settings.hard} of {fewest} texts of similar images; choose a smaller --hard")
        _LOG.info("neighbours: scoring %d pairs, once", (texts != ABSENT).sum())
        found = score_neighbours(score, texts, labels, bound_to, PAIRS)
    found.save(path)
    return found


def opened(examples: ExampleSet, number: int, role: str = "image") -> Image:
    """An image of an example. Raises `BuildFailed`: it cannot be read."""
    try:
        return examples.open_image(examples[number], role)
    except BrokenTar as error:
        examples.check_unchanged()  # a rebuilt dataset seems broken: say what it is
        raise BuildFailed(f"{error}. Fetch this tar again or run its build again, then resume") from error


@dataclass(frozen=True, slots=True)
class Part:
    """Some examples of a step with their negatives. Each image and text is there once, with its place in ``texts``.

    rows: places of the examples, (n,); negatives: places of theirs, (n, m); close: whether they are hard. pixels: as
    the model's processor gives them, by name.
    """

    rows: NDArray[np.int64]
    negatives: NDArray[np.int64]
    close: NDArray[np.bool_]
    pixels: dict[str, NDArray[Any]]
    texts: list[str]


@dataclass(frozen=True, slots=True)
class FusionBatch(Read):
    """A step. parts: made while they are asked for: all of a step would not fit into memory."""

    parts: Iterator[Part]


class FusionBatches:
    """The steps of a run; processor: the model's own, of images."""

    def __init__(
        self, settings: FusionSettings, examples: ExampleSet, neighbours: Neighbours, labels: Labels, processor: Any
    ) -> None:
        self._settings, self._examples, self._processor = settings, examples, processor
        self._neighbours, self._labels = neighbours, labels
        self.steps_per_epoch = len(examples) // settings.batch

    def stream(self, first: int, last: int) -> Generator[FusionBatch, None, None]:
        """The batches of steps [first, last); as `training.examples.Batches.stream` it ends where data were rebuilt."""
        count, workers = self._settings.accumulate, self._settings.workers
        numbers = range(first * count, last * count)
        parts = made_ahead(self.part, numbers, workers, AHEAD) if workers else (self.part(one) for one in numbers)
        with contextlib.closing(parts):
            for step in range(first, last):
                if step and step % self.steps_per_epoch == 0:
                    self._examples.check_unchanged()
                keys = [self._examples[number].key for number in self._rows(step).tolist()]
                yield FusionBatch(step, step // self.steps_per_epoch, keys, islice(parts, count))

    def part(self, number: int) -> Part:
        """A part by its number, counted over all steps: a pure function of it."""
        settings = self._settings
        step, place = divmod(number, settings.accumulate)
        rows = np.split(self._rows(step), settings.accumulate)[place]
        rng = generator_for(settings.seed, "training", repr(("negatives", number)))
        negatives, close = (
            tensor.numpy()
            for tensor in sample_negatives(self._neighbours, rows, rng, settings.negatives, settings.hard, self._labels)
        )
        numbers, places = np.unique(np.append(rows, negatives), return_inverse=True)
        pictures = [self._picture(int(one), step // self.steps_per_epoch) for one in numbers]
        pixels = self._processor(pictures, return_tensors="pt")
        return Part(
            rows=places[: len(rows)],
            negatives=places[len(rows) :].reshape(negatives.shape),
            close=close,
            pixels={name: value.numpy() for name, value in pixels.items()},
            texts=[self._examples[int(one)].texts["text"] for one in numbers],
        )

    def _rows(self, step: int) -> NDArray[np.int64]:
        """Numbers of the examples of a step."""
        epoch, place = divmod(step, self.steps_per_epoch)
        return order(len(self._examples), self._settings.seed, epoch)[place * self._settings.batch :][
            : self._settings.batch
        ]

    def _picture(self, number: int, epoch: int) -> Image:
        picture = opened(self._examples, number)
        if self._settings.transform == "evaluation":
            return picture
        example = self._examples[number]
        return random_crop(picture, augmentation_seed(self._settings.seed, epoch, example.key, "image"))
