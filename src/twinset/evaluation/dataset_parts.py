"""What twinset built as one benchmark for each kind of sample: a table of scores asks one kind of question."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.benchmarks.built_dataset import BuiltDataset
from twinset.evaluation.examples import Benchmark
from twinset.shards.records import planned_stage

#: By kind of sample: what follows in the name, and in the title.
KINDS: Mapping[str, tuple[str, str]] = {
    "pair": ("pairs", "two images, two captions"),
    "text-pair": ("text-pairs", "one image, two captions"),
    "triplet": ("triplets", "an image and a text that modifies it, target or distractor"),
    "template": ("galleries", "an image and a text that modifies it"),
    "image-text": ("retrieval", "captions of images, and images of captions"),
}


class Part(BuiltDataset):
    """The subsets of one kind of a built dataset as a benchmark of its own. kind: of samples, a key of `KINDS`."""

    def __init__(self, data: str, subsets: Sequence[str], kind: str, name: str, title: str) -> None:
        super().__init__(data, subsets)
        self.kind, self.name, self.title = kind, name, title


def parts_of(dataset: BuiltDataset, name: str, title: str) -> list[Part]:
    """The parts of a dataset, in the order of `KINDS`.

    Args:
        name, title: of the whole; those of a part are ``NAME-pairs`` and ``TITLE: two images, two captions``.
    """
    kind_of = {subset: planned_stage(dataset.store, subset).facts["makes"] for subset in dataset.subsets}
    return [
        Part(dataset.place, subsets, kind, f"{name}-{ending}", f"{title}: {asked}")
        for kind, (ending, asked) in KINDS.items()
        if (subsets := [subset for subset, made in kind_of.items() if made == kind])
    ]


def open_benchmarks(
    name: str, data: Path | str, subsets: Sequence[str] = (), captions_only: bool = False
) -> list[Benchmark]:
    """As `evaluation.benchmarks.open_benchmark`, but a dataset of several `KINDS` becomes a benchmark for each kind."""
    opened = open_benchmark(name, data, subsets, captions_only)
    parts = parts_of(opened, opened.name, opened.title) if isinstance(opened, BuiltDataset) else []
    return [*parts] if len(parts) > 1 else [opened]
