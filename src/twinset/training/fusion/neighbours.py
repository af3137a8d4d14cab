"""The neighbours of a run's examples, found and scored once before its first step and kept in its folder (EqBen C); and
what a step reads: examples with negatives sampled from these, in parts, as a pure function of seed and step.
"""

import dataclasses
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
from twinset.training.clip.steps import stream_seed
from twinset.training.examples.batches import MAX_BROKEN
from twinset.training.examples.contracts import Example, Place, Read
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.neighbours import ImageNeighbours, image_numbers, packed
from twinset.training.examples.ordering import Integers, augmentation_bits, order
from twinset.training.examples.transforms import NUMBERS, crop_box
from twinset.training.fusion.models import PASS, Start
from twinset.training.fusion.randaugment import RANDAUGMENT, randaugmented
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

FILE = "neighbours.safetensors"
PAIRS = 256  # scored at a time, or those of one image
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Mined:
    """Neighbours of the examples that can be read. numbers: of these in the data, (n,). labels: of these, (2, n)."""

    neighbours: Neighbours
    numbers: NDArray[np.int64]
    labels: Labels


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
    settings: FusionSettings,
    out: Path,
    start: Start,
    examples: ExampleSet,
    labels: Labels,
    near: ImageNeighbours | None = None,
) -> Mined:
    """The neighbours that ``out`` has of these examples by these models; where there are none, find them.

    Args:
        near: of the table that settings name; None: similar images are found here.

    Raises:
        WrongUse: those that are there are of others.
        BuildFailed: too many examples cannot be read.
    """
    bound_to = digest([examples.digest(), start.identity(), settings.nearest, near.digest if near else None])
    path = out / FILE
    if path.exists():
        found = load_neighbours(path, bound_to)
    else:
        torch.manual_seed(stream_seed(settings.seed, "neighbours"))  # ViLT reads patches in a random order
        with torch.inference_mode():
            found = _mined(settings, start, examples, labels, bound_to, near)
        found.save(path)
    numbers = np.delete(np.arange(len(examples)), [number for number, _, _ in found.left_out])
    return Mined(found, numbers, relabelled(labels[:, numbers]))


def relabelled(labels: Labels) -> Labels:
    """Labels of some examples with their images numbered anew from 0, in the same order."""
    return np.stack([np.unique(labels[0], return_inverse=True)[1], labels[1]])


def _mined(
    settings: FusionSettings,
    start: Start,
    examples: ExampleSet,
    labels: Labels,
    bound_to: str,
    near: ImageNeighbours | None,
) -> Neighbours:
    features, left_out = _encoded(start, examples, labels[0], near is None)
    numbers = np.delete(np.arange(len(examples)), [number for number, _, _ in left_out])
    if near is None:
        places = nearest(features, settings.nearest)[0].cpu().numpy().astype(np.int32)
    else:  # by the numbers of the images that can be read
        readable = np.unique(labels[0, numbers])
        here = np.full(len(near.places) + 1, ABSENT, np.int32)  # its last place is that of `ABSENT`
        here[readable] = np.arange(len(readable), dtype=np.int32)
        places = packed(here[near.places[readable]])[:, : settings.nearest]
    kept = relabelled(labels[:, numbers])
    texts = texts_of_neighbours(places, kept)
    fewest = int((texts != ABSENT).sum(axis=1).min())
    if fewest < settings.hard:
        raise WrongUse(f"hard: {settings.hard} of {fewest} texts of similar images; choose a smaller --hard")
    _LOG.info("neighbours: scoring %d pairs, once", (texts != ABSENT).sum())

    def score(images: Tensor, said: Tensor) -> Tensor:
        (shown, which), (some, what) = (torch.unique(one, return_inverse=True) for one in (images, said))
        pictures = [examples.open_image(examples[int(numbers[place])], "image") for place in shown.tolist()]
        words = [examples[int(numbers[place])].texts["text"] for place in some.tolist()]
        return start.read(start.scorer.pixels(pictures), words).score(which, what)

    return dataclasses.replace(score_neighbours(score, texts, kept, bound_to, PAIRS), left_out=left_out)


def _encoded(
    start: Start, examples: ExampleSet, images: Integers, encodes: bool
) -> tuple[Tensor, tuple[tuple[int, str, str], ...]]:
    """Open each image where it lies, once, whether it is encoded or not: what cannot be read is left out.

    Args:
        images: number of each example's image, (n,).

    Returns:
        Features with norm 1 of the images that can be read, in the order of their numbers, (images, d); and number,
        place and reason of each example that cannot be.
    """
    opened, features, left_out = dict[tuple[str, Place], str](), dict[int, Tensor](), list[tuple[int, str, str]]()
    waiting = dict[int, Image]()
    for number, image in enumerate(images.tolist()):
        example = examples[number]
        place = example.dataset, example.images["image"]
        if place not in opened:
            opened[place] = ""
            try:
                picture = examples.open_image(example, "image")
                if encodes and image not in features:
                    waiting[image] = picture
            except BrokenTar as error:
                _LOG.warning("left out of training: %s", error)
                opened[place] = str(error).removeprefix(f"{example.where}.")
        if opened[place]:
            left_out.append((number, example.where, opened[place]))
        if len(waiting) == PASS or (waiting and number == len(images) - 1):
            features |= zip(waiting, _features(start, [*waiting.values()]), strict=True)
            waiting.clear()
    if len(left_out) > MAX_BROKEN * len(examples):
        raise BuildFailed(
            f"{len(left_out)} of {len(examples)} examples cannot be read, more than {MAX_BROKEN:.1%} of them; the "
            f"first is {left_out[0][1]}: {left_out[0][2]}. Fetch these tars again or run their build again"
        )
    stacked = torch.stack([features[image] for image in sorted(features)]) if features else torch.empty(0)
    return stacked, tuple(left_out)


def _features(start: Start, pictures: list[Image]) -> Tensor:
    if start.encoder is not None:
        return torch.from_numpy(start.encoder.encode_images(pictures))
    return functional.normalize(start.scorer.image_features(start.scorer.pixels(pictures)).float(), dim=-1)


AHEAD = 4  # parts that a worker prepares before they are asked for


@dataclass(frozen=True, slots=True)
class Task:
    """Places, among the examples that can be read, of a part's examples, (n,), and of their negatives, (n, m)."""

    epoch: int
    rows: NDArray[np.int64]
    negatives: NDArray[np.int64]
    close: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """Some examples of a step with their negatives. Each image and text is there once, with its place in ``texts``.

    keys: of the examples. rows: their places, (n,); negatives: places of theirs, (n, m); close: whether they are hard.
    pixels: as the model's processor gives them, by name.
    """

    keys: tuple[str, ...]
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

    def __init__(self, settings: FusionSettings, examples: ExampleSet, mined: Mined, processor: Any) -> None:
        self._settings, self._examples, self._mined, self._processor = settings, examples, mined, processor
        self.steps_per_epoch = len(mined.numbers) // settings.batch
        size = dict(processor.size)
        self._size = (size["width"], size["height"]) if "height" in size else None

    def stream(self, first: int, last: int) -> Generator[FusionBatch, None, None]:
        """The batches of steps [first, last); as `training.examples.Batches.stream` it ends where data were rebuilt."""
        parts = self._parts(first, last)
        try:
            for step in range(first, last):
                if step and step % self.steps_per_epoch == 0:
                    self._examples.check_unchanged()
                left_out = () if step else tuple((where, why) for _, where, why in self._mined.neighbours.left_out)
                some = islice(parts, self._settings.accumulate)
                yield FusionBatch(step, step // self.steps_per_epoch, some, left_out=left_out)
        finally:
            parts.close()

    def _parts(self, first: int, last: int) -> Generator[Part, None, None]:
        from twinset.training.examples.workers import made_ahead

        tasks = (task for step in range(first, last) for task in self._tasks(step))
        workers = self._settings.workers
        try:
            yield from made_ahead(self._prepared, tasks, workers, AHEAD) if workers else map(self._prepared, tasks)
        except BuildFailed:
            self._examples.check_unchanged()  # a rebuilt dataset seems broken: say what it is
            raise

    def _tasks(self, step: int) -> Iterator[Task]:
        settings = self._settings
        epoch, place = divmod(step, self.steps_per_epoch)
        rows = order(len(self._mined.numbers), settings.seed, epoch)[place * settings.batch :][: settings.batch]
        rng = generator_for(settings.seed, "training", repr(("negatives", step)))
        found = sample_negatives(
            self._mined.neighbours, rows, rng, settings.negatives, settings.hard, self._mined.labels
        )
        negatives, close = (one.numpy() for one in found)
        for some in np.split(np.arange(settings.batch), settings.accumulate):
            yield Task(epoch, rows[some], negatives[some], close[some])

    def _prepared(self, task: Task) -> Part:
        every, where = np.unique(np.concatenate([task.rows, task.negatives.ravel()]), return_inverse=True)
        read = [self._examples[int(self._mined.numbers[place])] for place in every]
        pictures = [self._picture(example, task.epoch) for example in read]
        pixels = self._processor(pictures, return_tensors="pt")
        rows, negatives = where[: len(task.rows)], where[len(task.rows) :].reshape(task.negatives.shape)
        return Part(
            keys=tuple(read[place].key for place in rows),
            rows=rows,
            negatives=negatives,
            close=task.close,
            pixels={name: value.numpy() for name, value in pixels.items()},
            texts=[example.texts["text"] for example in read],
        )

    def _picture(self, example: Example, epoch: int) -> Image:
        try:
            picture = self._examples.open_image(example, "image")
        except BrokenTar as error:
            raise BuildFailed(
                f"{error}; it could be read when neighbours were scored. Put it back, then resume"
            ) from error
        if self._settings.transform == "evaluation":
            return picture
        count = NUMBERS if self._settings.transform == "training" else RANDAUGMENT
        bits = augmentation_bits(self._settings.seed, epoch, example.key, example.copy, "image", count)
        if self._settings.transform == "randaugment":
            return randaugmented(picture, bits, self._size)
        left, top, width, height = crop_box(picture.width, picture.height, bits)
        return picture.crop((left, top, left + width, top + height))
