"""What the training of a Combiner reads: triplets to train on, and queries to choose the best weights by."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Benchmark, Picture, Query
from twinset.training.clip.data import RunData, refuse_shared
from twinset.training.combiner.cirr import cirr_triplets
from twinset.training.combiner.settings import CIRR, CombinerSettings
from twinset.training.examples.contracts import Example
from twinset.training.examples.example_set import ExampleSet, open_examples

REFERENCE, TARGET, DISTRACTOR, CONDITION = "reference", "target", "distractor", "condition"


class RankedTriplets(Benchmark):
    """Triplets as queries: which of all their target and distractor images is meant by a reference and a condition.

    Images are told apart by their bytes. The reference itself is not ranked.
    """

    name, title, citation = "triplets", "Triplets to validate with", ""

    def __init__(self, triplets: ExampleSet) -> None:
        self.triplets = triplets

    def examples(self) -> Iterator[Query]:
        triplets = [self.triplets[number] for number in range(len(self.triplets))]
        gallery, places = list[Picture](), dict[str | None, int]()
        for triplet in triplets:
            for role in (TARGET, DISTRACTOR):
                if role in triplet.images and triplet.images[role].sha256 not in places:
                    places[triplet.images[role].sha256] = len(gallery)
                    gallery.append(picture(self.triplets, triplet, role))
        for triplet in triplets:
            reference = places.get(triplet.images[REFERENCE].sha256)
            yield Query(
                key=triplet.key,
                subset=self.name,
                group=triplet.group,
                image=picture(self.triplets, triplet, REFERENCE),
                text=triplet.texts[CONDITION],
                gallery=gallery,
                targets=frozenset({places[triplet.images[TARGET].sha256]}),
                excluded=frozenset(() if reference is None else (reference,)),
            )

    def digest(self) -> str:
        return self.triplets.digest()

    def facts(self) -> list[dict[str, Any]]:
        return self.triplets.facts()


def open_data(settings: CombinerSettings) -> RunData:
    """Open the data of a run. Raises `WrongUse`: some cannot be read; or training and validation share a group."""
    training = _open_triplets(settings.data, settings.split)
    if not settings.validation:
        return RunData(training, None)
    if settings.validation[0].startswith(CIRR):
        return RunData(training, open_benchmark("cirr", settings.validation[0].removeprefix(CIRR), ("global",)))
    validation = _open_triplets(settings.validation, settings.validation_split)
    validation.require((REFERENCE, TARGET, CONDITION))
    refuse_shared(training, validation)
    return RunData(training, RankedTriplets(validation))


def _open_triplets(places: Sequence[str], split: str | None) -> ExampleSet:
    """As `open_examples`; ``cirr=DIR`` is CIRR's training split."""
    released = [cirr_triplets(place) for place in places if place.startswith(CIRR)]
    built = [place for place in places if not place.startswith(CIRR)]
    return ExampleSet([*released, *(open_examples(built, "triplets", split).datasets if built else ())])


def picture(examples: ExampleSet, example: Example, role: str) -> Picture:
    """An image of an example as evaluation reads it; an error of it ends the run."""
    return Picture(f"{example.where}.{role}", partial(_read, examples, example, role))


def _read(examples: ExampleSet, example: Example, role: str) -> bytes:
    with examples.needed():
        return examples.read_image(example, role)
