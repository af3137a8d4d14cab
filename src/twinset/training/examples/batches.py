"""Batches as a pure function of the step, however many processes prepare them."""

import contextlib
import dataclasses
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.contracts import Broken, Example, Read, Tokenize
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.ordering import Integers, augmentation_seed, order
from twinset.training.examples.transforms import Transforms
from twinset.training.examples.workers import made_ahead
from twinset.training.runs.processes import gathered

MAX_BROKEN = 0.01  # share of the examples that may be unreadable, as `max_missing` of a build
AHEAD = 2  # batches that each worker prepares before they are asked for
_LOG = logging.getLogger("twinset")
Pixels = NDArray[np.uint8]


@dataclasses.dataclass(frozen=True, slots=True)
class Batch(Read):
    """What one step reads; of several ranks, one rank's slice, and what all leave out. Other examples took its place.

    images: float32 (n, 3, height, width) by role, normalised. texts: int64 tokens (n, L) by role.
    """

    groups: tuple[str, ...]
    images: Mapping[str, Any]
    texts: Mapping[str, Any]


class Batches:
    """The batches of a training run.

    Args:
        tokenize: from texts to tokens, (n, L) int64, such as open_clip's tokenizer of a model.
        batch: examples of a step, of all ranks together.
        seed: decides order and crops.
        roles: images and texts that are read; every example must have them.
        workers: processes that prepare batches ahead; 0 for this one alone. The batches are the same.
        rank, world: this process reads slots [rank, rank + 1) * batch / world of every batch.

    Raises:
        WrongUse: the numbers do not fit each other, or an example lacks a role.
    """

    def __init__(
        self,
        examples: ExampleSet,
        prepare: Transforms,
        tokenize: Tokenize,
        batch: int,
        seed: int,
        roles: Sequence[str],
        workers: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if batch < 1 or batch % world:
            raise WrongUse(f"a batch of {batch} cannot be shared by {world} processes; choose a multiple of {world}")
        examples.require(roles)
        self.examples, self.prepare, self.tokenize = examples, prepare, tokenize
        self.batch, self.seed, self.workers = batch, seed, workers
        self.steps_per_epoch = len(examples) // batch
        if not self.steps_per_epoch:
            raise WrongUse(f"{len(examples):,} examples do not fill a batch of {batch:,}; choose a smaller --batch")
        self.image_roles = tuple(role for role in roles if role in examples.image_roles)
        self.text_roles = tuple(role for role in roles if role in examples.text_roles)
        self._mine = range(rank * batch // world, (rank + 1) * batch // world)
        self.broken: Broken = {}

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0. Raises `BuildFailed`: more than `MAX_BROKEN` cannot be read."""
        return self._finished(*self._prepared(step))

    def stream(self, first_step: int, last_step: int) -> Generator[Batch, None, None]:
        """The batches of steps [first_step, last_step), prepared ahead by the workers.

        After the last batch of each epoch, and of all, the datasets are compared with what was opened. Closing the
        iterator ends the workers. Raises `BuildFailed`: as `at`; or a dataset was rebuilt meanwhile.
        """
        steps = range(first_step, last_step)
        with contextlib.closing(made_ahead(self._prepared, steps, self.workers, AHEAD)) as ahead:
            try:
                for step in steps:
                    yield self._finished(*next(ahead)) if self.workers else self.at(step)
                    if (step + 1) % self.steps_per_epoch == 0 or step == steps[-1]:
                        self.examples.check_unchanged()
            except BuildFailed:
                self.examples.check_unchanged()  # a rebuilt dataset seems broken: say what it is
                raise

    def _prepared(self, step: int) -> tuple[Batch, Broken]:
        """This rank's slots of a step, a pure function of it in any process, and what could not be read.

        Images are pixels, (n, height, width, 3) uint8, and texts arrays: a quarter of float32 between processes.
        """
        epoch = step // self.steps_per_epoch
        numbers = order(len(self.examples), self.seed, epoch)
        rows = [self._readable(step, slot, numbers) for slot in self._mine]
        examples = [example for example, _, _ in rows]
        broken = {number: problem for _, _, of_slot in rows for number, problem in of_slot.items()}
        images = {role: np.stack([pixels[role] for _, pixels, _ in rows]) for role in self.image_roles}
        words = {role: [example.texts[role] for example in examples] for role in self.text_roles}
        batch = Batch(
            step=step,
            epoch=epoch,
            keys=tuple(example.key for example in examples),
            groups=tuple(example.group for example in examples),
            images=images,
            texts={role: np.asarray(self.tokenize(texts), np.int64) for role, texts in words.items()},
        )
        return batch, broken

    def _finished(self, batch: Batch, broken: Broken) -> Batch:
        """With tensors, and with what is broken in the slots of all ranks, which is counted."""
        for number, (where, why) in broken.items():
            if number not in self.broken:
                _LOG.warning("left out of training: %s: %s", where, why)
        if len(self._mine) < self.batch:
            broken = {number: problem for of_rank in gathered(broken) for number, problem in of_rank.items()}
        self.broken.update(broken)
        if len(self.broken) > MAX_BROKEN * len(self.examples):
            self._fail(self.broken)
        return dataclasses.replace(
            batch,
            images={role: self.prepare.tensor(pixels) for role, pixels in batch.images.items()},
            texts={role: torch.from_numpy(tokens) for role, tokens in batch.texts.items()},
            left_out=tuple(broken.values()),
        )

    def _readable(self, step: int, slot: int, numbers: Integers) -> tuple[Example, dict[str, Pixels], Broken]:
        """The example of a slot, or what takes its place: this depends on no other slot. numbers: of the epoch."""
        broken = Broken()
        for number in self._candidates(step, slot, numbers):
            example = self.examples[number]
            try:
                return example, {role: self._pixels(example, role, step) for role in self.image_roles}, broken
            except BrokenTar as error:
                broken[number] = (example.where, str(error).removeprefix(f"{example.where}."))
                if len(broken) > MAX_BROKEN * len(self.examples):
                    break
        self._fail(broken)

    def _candidates(self, step: int, slot: int, numbers: Integers) -> Iterator[int]:
        """Numbers of examples for a slot: its own, then those of the following batches that may take its place.

        None of the batch is among them, and first are those whose number is of this slot alone: so no batch holds an
        example twice, even where several of its slots are broken.
        """
        start = step % self.steps_per_epoch * self.batch
        yield int(numbers[start + slot])
        following = np.roll(numbers, -start - self.batch)
        following = following[~np.isin(following, numbers[start : start + self.batch])]
        of_slot = following % self.batch == slot
        yield from following[of_slot].tolist()
        yield from following[~of_slot].tolist()

    def _pixels(self, example: Example, role: str, step: int) -> Pixels:
        seed = augmentation_seed(self.seed, step // self.steps_per_epoch, example.key, role)
        return self.prepare.pixels(self.examples.open_image(example, role), seed)

    def _fail(self, broken: Broken) -> NoReturn:
        (where, why), many = next(iter(broken.values())), len(broken) > MAX_BROKEN * len(self.examples)
        what = f"more than {MAX_BROKEN:.1%} of them" if many else "and no others are left to take their place"
        raise BuildFailed(
            f"{len(broken)} of {len(self.examples)} examples cannot be read, {what}; the first is {where}: {why}. "
            "Fetch these tars again or run their build again, then resume"
        )
