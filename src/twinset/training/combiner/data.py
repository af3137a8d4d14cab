"""What the training of a Combiner reads: triplets to train on, and queries to choose the best weights by."""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Benchmark, Picture, Query
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.combiner.cirr import cirr_part
from twinset.training.combiner.settings import CIRR, CombinerSettings
from twinset.training.examples.columns import Part
from twinset.training.examples.contracts import Example
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.ordering import held_out, order

MOST_HELD_OUT = 4096  # groups; CIRR's validation split has 4,181 queries
REFERENCE, TARGET, DISTRACTOR, CONDITION = "reference", "target", "distractor", "condition"
_LOG = logging.getLogger("twinset")


class Triplets(ExampleSet):
    """Some of the triplets of a set, each with its own condition or that of another.

    Args:
        whole: the set they are chosen from. numbers: which of its triplets, in order.
        shuffle: seed of the permutation of conditions; None: each keeps its own.
    """

    def __init__(self, whole: ExampleSet, numbers: NDArray[np.int64], shuffle: int | None = None) -> None:
        super().__init__(whole.parts)
        self._whole, self._numbers, self._shuffle = whole, numbers, shuffle
        # One permutation for all of a run: what is trained on is a dataset whose conditions are wrong.
        self._others = None if shuffle is None else numbers[order(len(numbers), shuffle, 0)]

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> Example:
        if not 0 <= number < len(self):
            raise IndexError(f"example {number} of {len(self)}")
        found = self._whole[int(self._numbers[number])]
        return found if self._others is None else replace(found, texts=self._whole[int(self._others[number])].texts)

    @cached_property
    def same(self) -> NDArray[np.int64] | None:
        return None if self._whole.same is None else self._whole.same[self._numbers]

    def digest(self) -> str:
        """As `ExampleSet.digest`, of the triplets that were chosen and of how their conditions are shuffled."""
        chosen = hashlib.sha256(self._numbers.astype("<i8").tobytes()).hexdigest()
        return hashlib.sha256(canonical_json([self._whole.digest(), chosen, self._shuffle])).hexdigest()

    def column(self, name: Literal["keys", "groups", "targets"]) -> NDArray[Any]:
        """One value of each triplet, (n,): its key, its group, or the start of the sha256 of its target."""
        return column(self._whole, name)[self._numbers]


def column(triplets: ExampleSet, name: Literal["keys", "groups", "targets"]) -> NDArray[Any]:
    """As `Triplets.column`, of all triplets of a set."""
    found = []
    for part in triplets.parts:
        if name == "targets":
            values = part.columns.images[TARGET].hashes
        else:
            values = np.array((part.columns.keys if name == "keys" else part.columns.groups).to_pylist(), object)
        found.append(np.tile(values, part.copies))  # a triplet is seen from one side
    return np.concatenate(found)


class HeldOut(Benchmark):
    """Triplets as queries: which of all their target and distractor images is meant by a reference and a condition.

    Images are told apart by their bytes. The reference itself is not ranked. Queries of one reference and one condition
    share their targets: each of these is right.
    """

    name, title, citation = "held-out", "Held-out triplets", ""

    def __init__(self, triplets: Triplets) -> None:
        self.triplets = triplets

    def examples(self) -> Iterator[Query]:
        gallery, places, targets = list[Picture](), dict[str, int](), dict[tuple[str, str], set[int]]()
        for example in self._all():
            for role in (TARGET, DISTRACTOR):
                if (place := example.images.get(role)) is not None and place.sha256 not in places:
                    places[place.sha256] = len(gallery)
                    gallery.append(picture(self.triplets, example, role))
            asked = example.images[REFERENCE].sha256, example.texts[CONDITION]
            targets.setdefault(asked, set()).add(places[example.images[TARGET].sha256])
        entries: Sequence[Picture] = tuple(gallery)
        for example in self._all():
            reference = example.images[REFERENCE].sha256
            yield Query(
                key=example.key,
                subset=self.name,
                group=example.group,
                image=picture(self.triplets, example, REFERENCE),
                text=example.texts[CONDITION],
                gallery=entries,
                targets=frozenset(targets[reference, example.texts[CONDITION]]),
                excluded=frozenset({places[reference]} if reference in places else ()),
            )

    def digest(self) -> str:
        return self.triplets.digest()

    def check_readable(self) -> None:
        """Raise `BuildFailed` for an image that cannot be read: all queries share the gallery that it belongs to.

        Without it the recall would be that of other queries, and another best would be chosen than after a repair.
        """
        for example in self._all():
            for role in example.images:
                try:
                    self.triplets.read_image(example, role)
                except BrokenTar as error:
                    raise BuildFailed(
                        f"validation: {error}. Fetch this tar again or run its build again, then resume"
                    ) from error

    def _all(self) -> Iterator[Example]:
        return (self.triplets[number] for number in range(len(self.triplets)))


@dataclass(frozen=True, slots=True)
class CombinerData:
    """What a run reads.

    held_out: number of triplets that are queries of ``validation`` and not trained on, 0 where it is other data.
    facts: every dataset and shard as JSON.
    """

    training: Triplets
    validation: Benchmark
    facts: dict[str, Any]
    held_out: int = 0

    def digests(self) -> dict[str, str]:
        """sha256 of each."""
        return {"data": self.training.digest(), "validation": self.validation.digest()}


def open_data(settings: CombinerSettings) -> CombinerData:
    """Open the data of a run. Raises `WrongUse`: a dataset cannot be read or has no triplets, or there are too few
    groups to hold some out.
    """
    whole = _open_triplets(settings.data, settings.split)
    shuffle = settings.seed if settings.conditions == "shuffled" else None
    everything = np.arange(len(whole))
    if settings.validation and settings.validation[0].startswith(CIRR):
        cirr = open_benchmark("cirr", settings.validation[0].removeprefix(CIRR), ("global",))
        return CombinerData(Triplets(whole, everything, shuffle), cirr, {"data": whole.facts(), "validation": []})
    if settings.validation:
        other = open_examples(settings.validation, "triplets", settings.validation_split)
        training, validation = Triplets(whole, everything, shuffle), Triplets(other, np.arange(len(other)))
        _check_apart(training, validation)
        return CombinerData(training, HeldOut(validation), {"data": whole.facts(), "validation": other.facts()})
    groups = column(whole, "groups").tolist()
    share = min(settings.held_out, MOST_HELD_OUT / len(set(groups)))
    chosen = held_out(groups, share, settings.seed)
    training, validation = Triplets(whole, everything[~chosen], shuffle), Triplets(whole, everything[chosen])
    _check_apart(training, validation)
    facts = {"data": whole.facts(), "validation": []}
    return CombinerData(training, HeldOut(validation), facts, len(validation))


def _open_triplets(places: Sequence[str], split: str | None) -> ExampleSet:
    """As `open_examples`; ``cirr=DIR`` is CIRR's training split."""
    parts: list[Part] = []
    for place in places:
        parts += [cirr_part(place)] if place.startswith(CIRR) else open_examples((place,), "triplets", split).parts
    return ExampleSet(parts)


def _check_apart(training: Triplets, validation: Triplets) -> None:
    """Refuse a triplet that both hold with `WrongUse`; warn of target images that both hold."""
    validation.require((REFERENCE, TARGET, CONDITION))
    if both := {*training.column("keys")} & {*validation.column("keys")}:
        raise WrongUse(f"validation: {min(both)} is trained on and validated with; name other triplets as validation")
    seen = np.isin(validation.column("targets"), training.column("targets"))
    if seen.any():
        _LOG.warning(
            "validation: %d of %d targets are targets in training too, of other triplets: recall is partly that of "
            "images that were seen",
            seen.sum(),
            len(seen),
        )


def picture(triplets: Triplets, example: Example, role: str) -> Picture:
    """An image of a triplet as evaluation reads it."""
    return Picture(f"{example.where}.{role}", partial(_read, triplets, example, role))


def _read(triplets: Triplets, example: Example, role: str) -> bytes:
    try:
        return triplets.read_image(example, role)
    except BrokenTar as error:
        raise WrongUse(str(error)) from error
