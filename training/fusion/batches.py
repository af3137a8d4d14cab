"""What a step reads: examples with their sampled negatives, in parts, as a pure function of seed and step."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from twinset.manifests.canonical import generator_for
from twinset.manifests.errors import BuildFailed
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.contracts import Example
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.ordering import augmentation_bits, order
from twinset.training.examples.transforms import NUMBERS, crop_box
from twinset.training.fusion.neighbours import Mined
from twinset.training.fusion.settings import FusionSettings
from twinset.training.losses.mining import sample_negatives

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
class FusionBatch:
    """A step. parts: made while they are asked for: all of a step would not fit into memory."""

    step: int
    epoch: int
    parts: Iterator[Part]
    left_out: tuple[tuple[str, str], ...] = ()


class FusionBatches:
    """The steps of a run; processor: the model's own, of images."""

    def __init__(self, settings: FusionSettings, examples: ExampleSet, mined: Mined, processor: Any) -> None:
        self._settings, self._examples, self._mined, self._processor = settings, examples, mined, processor
        self.steps_per_epoch = len(mined.numbers) // settings.batch

    def stream(self, first: int, last: int) -> Generator[FusionBatch, None, None]:
        """The batches of steps [first, last); as `training.examples.Batches.stream` it ends where data were rebuilt."""
        parts = self._parts(first, last)
        try:
            for step in range(first, last):
                if step and step % self.steps_per_epoch == 0:
                    self._examples.check_unchanged()
                left_out = () if step else tuple((where, why) for _, where, why in self._mined.neighbours.left_out)
                some = islice(parts, self._settings.accumulate)
                yield FusionBatch(step, step // self.steps_per_epoch, some, left_out)
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
        bits = augmentation_bits(self._settings.seed, epoch, example.key, example.copy, "image", NUMBERS)
        left, top, width, height = crop_box(picture.width, picture.height, bits)
        return picture.crop((left, top, left + width, top + height))
