"""What the training of a Combiner reads: triplets to train on, and queries to choose the best weights by."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from twinset.contracts.errors import BuildFailed
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Benchmark, Picture, Query
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.training.clip.data import refuse_shared
from twinset.training.combiner.cirr import cirr_dataset
from twinset.training.combiner.settings import CIRR, CombinerSettings
from twinset.training.examples.contracts import Example
from twinset.training.examples.example_set import ExampleSet, open_examples
from twinset.training.examples.table import Dataset

REFERENCE, TARGET, DISTRACTOR, CONDITION = "reference", "target", "distractor", "condition"


class RankedTriplets(Benchmark):
    """Triplets as queries: which of all their target and distractor images is meant by a reference and a condition.

    Images are told apart by their bytes. The reference itself is not ranked. Queries of one reference and one condition
    share their targets: each of these is right.
    """

    name, title, citation = "triplets", "Triplets to validate with", ""

    def __init__(self, triplets: ExampleSet) -> None:
        self.triplets = triplets

    def examples(self) -> Iterator[Query]:
        examples = [self.triplets[number] for number in range(len(self.triplets))]
        gallery = dict[str, Picture]()
        for example in examples:
            for role in (TARGET, DISTRACTOR):
                if role in example.images:
                    gallery.setdefault(example.images[role].sha256, picture(self.triplets, example, role))
        places = {sha256: place for place, sha256 in enumerate(gallery)}
        targets = defaultdict[tuple[str, str], set[int]](set)
        for example in examples:
            targets[_asked(example)].add(places[example.images[TARGET].sha256])
        entries = [*gallery.values()]
        for example in examples:
            reference, _ = asked = _asked(example)
            yield Query(
                key=example.key,
                subset=self.name,
                group=example.group,
                image=picture(self.triplets, example, REFERENCE),
                text=example.texts[CONDITION],
                gallery=entries,
                targets=frozenset(targets[asked]),
                excluded=frozenset({places[reference]} if reference in places else ()),
            )

    def digest(self) -> str:
        return self.triplets.digest()


def _asked(triplet: Example) -> tuple[str, str]:
    return triplet.images[REFERENCE].sha256, triplet.texts[CONDITION]


@dataclass(frozen=True, slots=True)
class TripletData:
    """What a run reads. validation: queries; None where none are named."""

    training: ExampleSet
    validation: Benchmark | None

    def digests(self) -> dict[str, str | None]:
        """sha256 of each."""
        return {"data": self.training.digest(), "validation": self.validation.digest() if self.validation else None}

    def facts(self) -> dict[str, Any]:
        """Every dataset and shard as JSON."""
        ranked = self.validation.triplets.facts() if isinstance(self.validation, RankedTriplets) else []
        return {"data": self.training.facts(), "validation": ranked}


def open_data(settings: CombinerSettings) -> TripletData:
    """Open the data of a run. Raises `WrongUse`: some cannot be read; or training and validation share a group."""
    training = _open_triplets(settings.data, settings.split)
    if not settings.validation:
        return TripletData(training, None)
    if settings.validation[0].startswith(CIRR):
        return TripletData(training, open_benchmark("cirr", settings.validation[0].removeprefix(CIRR), ("global",)))
    validation = _open_triplets(settings.validation, settings.validation_split)
    validation.require((REFERENCE, TARGET, CONDITION))
    refuse_shared(training, validation)
    return TripletData(training, RankedTriplets(validation))


def _open_triplets(places: Sequence[str], split: str | None) -> ExampleSet:
    """As `open_examples`; ``cirr=DIR`` is CIRR's training split."""
    datasets = list[Dataset]()
    for place in places:
        opened = (
            (cirr_dataset(place),) if place.startswith(CIRR) else open_examples((place,), "triplets", split).datasets
        )
        datasets += opened
    return ExampleSet(datasets)


def picture(examples: ExampleSet, example: Example, role: str) -> Picture:
    """An image of an example as evaluation reads it; an error of it ends the run."""
    return Picture(f"{example.where}.{role}", partial(_read, examples, example, role))


def _read(examples: ExampleSet, example: Example, role: str) -> bytes:
    try:
        return examples.read_image(example, role)
    except BrokenTar as error:
        raise BuildFailed(f"{error}. Fetch this tar again or run its build again, then resume") from error
