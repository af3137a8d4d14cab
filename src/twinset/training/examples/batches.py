"""Batches as a pure function of the step, however many processes prepare them."""

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.examples.contracts import Broken, Example, Read, Tokenize
from twinset.training.examples.example_set import ExampleSet
from twinset.training.examples.neighbours import ImageNeighbours
from twinset.training.examples.ordering import augmentation_bits, kept_apart, order, whole_batches
from twinset.training.examples.transforms import NUMBERS, Transforms

MAX_BROKEN = 0.01  # share of the examples that may be unreadable, as `max_missing` of a build
CHUNK = 32  # slots that a worker prepares at once: 5 MB of images at 224 pixels
PARALLEL_READS = 16  # of an object store, whose latency is what costs
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Batch(Read):
    """What one step reads; of several ranks, one rank's slice. Other examples took the places of what is left out.

    images: float32 (n, 3, height, width) by role, normalised. texts: int64 tokens (n, L) by role.
    """

    groups: tuple[str, ...]
    images: Mapping[str, torch.Tensor]
    texts: Mapping[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Slots:
    """A range of slots of a batch. step: from 0; first, last: of the whole batch, ``last`` excluded."""

    step: int
    first: int
    last: int


@dataclass(slots=True)
class Prepared:
    """What a process made of some slots.

    images: by role, (n, height, width, 3) uint8: a quarter of float32 on its way between processes. texts: tokens
    by role, (n, L) int64. broken: where an example lies and why it cannot be read, by its number.
    """

    keys: tuple[str, ...]
    groups: tuple[str, ...]
    images: Mapping[str, NDArray[np.uint8]]
    texts: Mapping[str, NDArray[np.int64]]
    broken: Broken


class Batches:
    """The batches of a training run.

    Args:
        examples: at least one batch. Of an example that they hold more than once, a batch holds one copy.
        prepare: from pictures to pixels and tensors.
        tokenize: from texts to tokens, (n, L) int64, such as open_clip's tokenizer of a model.
        batch: examples of a step, of all ranks together.
        seed: decides order and crops.
        roles: images and texts that are read; every example must have them.
        workers: processes that prepare batches ahead; 0 for this one alone. The batches are the same.
        rank, world: this process reads slots [rank, rank + 1) * batch / world of every batch.
        max_broken: share of the examples that may be unreadable before the run ends.
        neighbours: half of each batch are neighbours of the other half; an epoch has each example in the other half.

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
        max_broken: float = MAX_BROKEN,
        neighbours: ImageNeighbours | None = None,
    ) -> None:
        if batch < 1 or world < 1 or batch % world or not 0 <= rank < world:
            raise WrongUse(f"a batch of {batch} cannot be shared by {world} processes; choose a multiple of {world}")
        self._same, self._neighbours = examples.same, neighbours
        if neighbours is not None and (batch % 2 or len(neighbours.places) <= batch):
            raise WrongUse(
                f"neighbours: half of a batch of {batch:,} are to be neighbours, each image once, and there are "
                f"{len(neighbours.places):,}; choose a smaller, even --batch"
            )
        self._ordered = batch if neighbours is None else batch // 2
        self.steps_per_epoch = (
            len(examples) // self._ordered if self._same is None else whole_batches(self._same, self._ordered)
        )
        if not self.steps_per_epoch:
            found = f"{examples.distinct:,}{'' if self._same is None else ' different'} examples"
            raise WrongUse(f"{found} do not fill a batch of {batch:,}; choose a smaller --batch")
        if workers < 0:
            raise WrongUse(f"{workers} workers: choose 0 or more")
        examples.require(roles)
        self.examples, self.prepare, self.tokenize = examples, prepare, tokenize
        self.batch, self.seed, self.workers, self.max_broken = batch, seed, workers, max_broken
        first = examples[0]
        self.image_roles = tuple(role for role in roles if role in first.images)
        self.text_roles = tuple(role for role in roles if role in first.texts)
        self._mine = range(rank * batch // world, (rank + 1) * batch // world)
        self.broken: Broken = {}
        self._order = (-1, np.empty(0, np.int64))  # of an epoch

    def at(self, step: int) -> Batch:
        """The batch of a step, counted from 0 over all epochs. Raises `BuildFailed`: more than ``max_broken`` of the
        examples cannot be read.
        """
        return self._assembled(step, [self.prepared(self._slots(step, self.batch)[0])])

    def stream(self, first_step: int, last_step: int) -> Generator[Batch, None, None]:
        """The batches of steps [first_step, last_step), prepared ahead by the workers.

        Before the first batch of each epoch but the first the datasets are compared with what was opened. Closing the
        iterator ends the workers. Raises `BuildFailed`: as `at`; or a dataset was rebuilt meanwhile.
        """
        parts = self._parts(first_step, last_step) if self.workers else None
        try:
            for step in range(first_step, last_step):
                if step and step % self.steps_per_epoch == 0:
                    self.examples.check_unchanged()
                if parts is None:
                    yield self.at(step)
                else:
                    yield self._assembled(step, [next(parts) for _ in self._slots(step, CHUNK)])
        except BuildFailed:
            self.examples.check_unchanged()  # a rebuilt dataset seems broken: say what it is
            raise
        finally:
            if parts is not None:
                parts.close()

    def prepared(self, slots: Slots) -> Prepared:
        """Read, decode, transform and tokenize; a pure function of the slots, in any process."""
        epoch = slots.step // self.steps_per_epoch
        numbers = self._in_order(epoch)

        def read(slot: int) -> tuple[Example, Mapping[str, NDArray[np.uint8]], Broken]:
            return self._readable(slots.step, epoch, slot, numbers)

        if self.examples.is_remote:
            with ThreadPoolExecutor(PARALLEL_READS) as pool:
                found = list(pool.map(read, range(slots.first, slots.last)))
        else:
            found = list(map(read, range(slots.first, slots.last)))
        texts = {role: [example.texts[role] for example, _, _ in found] for role in self.text_roles}
        return Prepared(
            keys=tuple(example.key for example, _, _ in found),
            groups=tuple(example.group for example, _, _ in found),
            images={role: np.stack([pixels[role] for _, pixels, _ in found]) for role in self.image_roles},
            texts={role: np.asarray(self.tokenize(some), np.int64) for role, some in texts.items()},
            broken={number: said for _, _, broken in found for number, said in broken.items()},
        )

    def _slots(self, step: int, most: int) -> list[Slots]:
        """This rank's slots of a step, at most some at a time."""
        last = self._mine.stop
        return [Slots(step, first, min(first + most, last)) for first in range(self._mine.start, last, most)]

    def _parts(self, first_step: int, last_step: int) -> Generator[Prepared, None, None]:
        """The chunks of some steps, in order, made by the workers."""
        from twinset.training.examples.workers import made_ahead

        each = len(self._slots(0, CHUNK))
        # While one batch is trained on, the workers make the next two.
        ahead = max(2, -(-2 * each // self.workers))
        chunks = (slots for step in range(first_step, last_step) for slots in self._slots(step, CHUNK))
        return made_ahead(self.prepared, chunks, self.workers, ahead)

    def _in_order(self, epoch: int) -> NDArray[np.int64]:
        """Numbers of the examples in the order of an epoch."""
        if self._same is None and self._neighbours is None:
            return order(len(self.examples), self.seed, epoch)
        if self._order[0] != epoch:
            found = order(len(self.examples), self.seed, epoch)
            if self._same is not None:
                found = kept_apart(found, self._same, self._ordered)
            if self._neighbours is not None:
                rng = generator_for(self.seed, "training", repr(("neighbours", epoch)))
                found = self._neighbours.mixed(found, self._ordered, rng)
            self._order = epoch, found
        return self._order[1]

    def _readable(
        self, step: int, epoch: int, slot: int, numbers: NDArray[np.int64]
    ) -> tuple[Example, dict[str, NDArray[np.uint8]], Broken]:
        """The example of a slot; where it is broken, that of the same slot of the next batch, and so on.

        So what fills a slot depends on no other slot, and a batch holds no example twice: those that other slots have,
        or may have in place of broken ones, are passed over. numbers: as `_in_order` has them.
        """
        broken = Broken()
        for number in self._candidates(step, slot, numbers):
            example = self.examples[number]
            try:
                return example, {role: self._pixels(example, role, epoch) for role in self.image_roles}, broken
            except BrokenTar as error:
                broken[number] = (example.where, str(error).removeprefix(f"{example.where}."))
                if len(broken) > self.max_broken * len(numbers):
                    break
        self._fail(broken)

    def _candidates(self, step: int, slot: int, numbers: NDArray[np.int64]) -> Iterator[int]:
        """Numbers of examples for a slot: its own, then those that may take its place."""
        n, start = len(numbers), step % self.steps_per_epoch * self.batch
        yield int(numbers[start + slot])
        same, passed = numbers if self._same is None else self._same[numbers], []
        for ahead in range(1, n):
            place, between = (start + slot + ahead * self.batch) % n, ahead * self.batch + slot
            if (same[start : start + self.batch] == same[place]).any():
                continue
            # Other slots may have come as far as this; of few examples they have seen all.
            if between < n and not (same[np.arange(start, start + between) % n] == same[place]).any():
                yield int(numbers[place])
            else:
                passed.append(int(numbers[place]))
        yield from passed

    def _pixels(self, example: Example, role: str, epoch: int) -> NDArray[np.uint8]:
        numbers = augmentation_bits(self.seed, epoch, example.key, example.copy, role, NUMBERS)
        return self.prepare.pixels(self.examples.open_image(example, role), numbers)

    def _assembled(self, step: int, parts: Sequence[Prepared]) -> Batch:
        broken = {number: said for part in parts for number, said in part.broken.items()}
        for number, (where, why) in broken.items():
            if number not in self.broken:
                _LOG.warning("left out of training: %s: %s", where, why)
        self.broken.update(broken)
        if len(self.broken) > self.max_broken * len(self.examples):
            self._fail(self.broken)
        images: dict[str, torch.Tensor] = {}
        for role in self.image_roles:
            images[role] = self.prepare.tensor(np.concatenate([part.images[role] for part in parts]))
        return Batch(
            step=step,
            epoch=step // self.steps_per_epoch,
            keys=tuple(key for part in parts for key in part.keys),
            groups=tuple(group for part in parts for group in part.groups),
            images=images,
            texts={
                role: torch.from_numpy(np.concatenate([part.texts[role] for part in parts])) for role in self.text_roles
            },
            left_out=tuple(broken.values()),
        )

    def _fail(self, broken: Broken) -> NoReturn:
        where, why = next(iter(broken.values()))
        what, remedy = f"more than {self.max_broken:.1%} of them", "run their build again, then resume"
        if len(broken) <= self.max_broken * len(self.examples):
            what, remedy = "and no others are left to take their place", f"{remedy}, or choose a smaller --batch"
        raise BuildFailed(
            f"{len(broken)} of {len(self.examples)} examples cannot be read, {what}; the first is {where}: {why}. "
            f"Fetch these tars again or {remedy}"
        )
