"""The pairs of a benchmark as columns, and the rows of every table about them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Benchmark, Grounding, LeftOut, Matching, Picture, Query, Statement

ALL = "all"
_OTHERS = {
    Query: "not a pair of captions: a query of a gallery",
    Statement: "not a pair of captions: a statement",
    Grounding: "not a pair of captions: a video",
}


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of captions, one entry each in every column.

    captions: of each the true one, or that of image 0, first. images: of each, one or two. groups: of each, a number.
    rows: pairs of each row of a table, by its name: `ALL`, subsets, and "subset / category"
    where a subset has several.
    left_out: examples by reason.
    """

    captions: tuple[list[str], list[str]]
    images: list[tuple[Picture, ...]]
    groups: NDArray[np.int32]
    subsets: NDArray[np.int32]
    rows: Mapping[str, NDArray[np.intp]]
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.images)

    def subset_places(self) -> Iterator[NDArray[np.intp]]:
        """Places of the pairs of each subset."""
        for code in range(int(self.subsets.max()) + 1):
            yield np.flatnonzero(self.subsets == code)


def read_pairs(benchmark: Benchmark) -> Pairs:
    """Read all matchings of a benchmark; of images only where they lie.

    An example without a group is a group of its own. Raises `WrongUse`: no example has two captions to tell apart, or
    the benchmark cannot be read.
    """
    captions: tuple[list[str], list[str]] = ([], [])
    images: list[tuple[Picture, ...]] = []
    named: list[tuple[str, str]] = []
    groups: list[str] = []
    left_out = Counter[str]()
    for example in benchmark.examples():
        if isinstance(example, LeftOut):
            left_out[example.reason] += 1
        elif not isinstance(example, Matching):
            left_out[_OTHERS[type(example)]] += 1
        else:
            for side, caption in zip(captions, example.captions, strict=True):
                side.append(caption)
            images.append(example.images)
            named.append((example.subset, example.category))
            groups.append(f"group {example.group}" if example.group else f"key {example.key}")
    if not images:
        counted = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "no examples at all"
        raise WrongUse(
            f"{benchmark.title}: no pairs of captions to probe ({counted}); name another benchmark or subset"
        )
    return Pairs(captions, images, _codes(groups), _codes([subset for subset, _ in named]), _rows(named), left_out)


def _codes(names: list[str]) -> NDArray[np.int32]:
    """Names as numbers, in the order in which they come first."""
    codes: dict[str, int] = {}
    return np.array([codes.setdefault(name, len(codes)) for name in names], np.int32)


def _rows(named: list[tuple[str, str]]) -> dict[str, NDArray[np.intp]]:
    """Places of all, of each subset, and of each of its categories, in the order in which they come first."""
    subsets: dict[str, dict[str, list[int]]] = {}
    for place, (subset, category) in enumerate(named):
        subsets.setdefault(subset, {}).setdefault(category, []).append(place)
    rows = {ALL: np.arange(len(named))}
    for subset, categories in subsets.items():
        if len(subsets) > 1:
            rows[subset] = np.sort(np.concatenate([np.array(places) for places in categories.values()]))
        if len(categories) > 1:
            rows |= {f"{subset} / {name or 'none'}": np.array(places) for name, places in categories.items()}
    return rows
