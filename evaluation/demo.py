"""The demo's subsets as small benchmarks, and small models that answer them: a tour without any download.

The models have random weights: they know nothing of what they are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.benchmarks.built_dataset import BuiltDataset
from evaluation.benchmarks.reader import Item
from evaluation.examples import Benchmark
from evaluation.report.page import write_report
from evaluation.run import OnProgress, Scored, run
from evaluation.scorers.contract import Running
from shards.records import planned_stage

#: A real architecture that encodes the demo in seconds.
ENCODERS = ("random:ViT-S-32-alt:0", "random:ViT-S-32-alt:1")
RULES = ("image+text", "image-only", "text-only")
#: Name and title by kind of sample: one benchmark asks one kind of question. Triplets are for training.
PARTS: Mapping[str, tuple[str, str]] = {
    "pair": ("demo-pairs", "Demo: two images, two captions"),
    "text-pair": ("demo-text-pairs", "Demo: one image, two captions"),
    "template": ("demo-galleries", "Demo: an image and a text that modifies it"),
}
GALLERIES = "demo-galleries"


@dataclass(frozen=True, slots=True)
class Part:
    """Some subsets of a built dataset as a benchmark of its own."""

    name: str
    title: str
    dataset: BuiltDataset

    @property
    def citation(self) -> str:
        """As the dataset's."""
        return self.dataset.citation

    def examples(self) -> Iterator[Item]:
        """As the dataset's."""
        return self.dataset.examples()

    def digest(self) -> str:
        """As the dataset's, which depends on the subsets."""
        return self.dataset.digest()


def demo_parts(data: Path) -> list[Part]:
    """The parts of a built demo, or of any dataset that ``twinset build`` wrote.

    Raises:
        WrongUse: the folder holds no such dataset, or one that is not finished.
    """
    dataset = BuiltDataset(data)
    makes = {subset: planned_stage(dataset.store, subset).facts["makes"] for subset in dataset.subsets}
    parts = []
    for kind, (name, title) in PARTS.items():
        subsets = [subset for subset, made in makes.items() if made == kind]
        if subsets:
            parts.append(Part(name, title, BuiltDataset(data, subsets)))
    return parts


def score_demo(
    data: Path, out: Path, cache: Path | None = None, on_progress: OnProgress | None = None
) -> tuple[list[Scored], Path]:
    """Score a built demo with two random encoders, and write the report; returns the scores and the page."""
    parts: Sequence[Benchmark] = demo_parts(data)
    running, scored = Running(), []
    for asked, models in (
        ([part for part in parts if part.name != GALLERIES], ENCODERS),
        ([part for part in parts if part.name == GALLERIES], [f"{rule}:{ENCODERS[0]}" for rule in RULES]),
    ):
        if asked:
            scored += run(asked, models, out, cache, running, on_progress)
    return scored, write_report(out, {part.name: part for part in parts})[0]
