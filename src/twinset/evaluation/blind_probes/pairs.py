"""The pairs of a benchmark as columns, and the rows of every table about them."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Benchmark, LeftOut, Matching, Picture
from twinset.evaluation.metrics.row_values import ALL, refuse_all

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of captions, one entry each in every column.

    captions: of each the true one, or that of image 0, first. images: of each, one or two. groups: of each, a number.
    subsets: places of the pairs of each subset. rows: places of the pairs of each row of a table: `ALL`, subsets, and
    "subset / category" where a subset has several. left_out: examples by reason.
    """

    captions: tuple[list[str], list[str]]
    images: list[tuple[Picture, ...]]
    groups: NDArray[np.int32]
    subsets: Mapping[str, Places]
    rows: Mapping[str, Places]
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.images)


def read_pairs(benchmark: Benchmark) -> Pairs:
    """Read all matchings of a benchmark; of images only where they lie.

    An example without a group is a group of its own. Raises `WrongUse`: no example has two captions to tell apart, or
    the benchmark cannot be read.
    """
    matchings, left_out = list[Matching](), Counter[str]()
    for example in benchmark.examples():
        if isinstance(example, Matching):
            matchings.append(example)
        elif isinstance(example, LeftOut):
            left_out[example.reason] += 1
        else:
            left_out[f"not a pair of captions: a {type(example).__name__.lower()}"] += 1
    if not matchings:
        counted = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "no examples at all"
        raise WrongUse(
            f"{benchmark.title}: no pairs of captions to probe ({counted}); name another benchmark or subset"
        )
    first, second = ([matching.captions[side] for matching in matchings] for side in (0, 1))
    names = [f"group {matching.group}" if matching.group else f"key {matching.key}" for matching in matchings]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    groups = np.array([codes[name] for name in names], np.int32)
    subsets = defaultdict[str, dict[str, list[int]]](dict)
    for place, matching in enumerate(matchings):
        subsets[matching.subset].setdefault(matching.category or "none", []).append(place)
    by_subset = {subset: np.sort(np.concatenate([*parts.values()])) for subset, parts in subsets.items()}
    if len(subsets) > 1:
        refuse_all(subsets, f"{benchmark.title}: the name of a subset")
    rows = {ALL: np.arange(len(matchings))}
    for subset, categories in subsets.items():
        if len(subsets) > 1:
            rows[subset] = by_subset[subset]
        if len(categories) > 1:
            rows |= {f"{subset} / {name}": np.array(places) for name, places in categories.items()}
    return Pairs((first, second), [matching.images for matching in matchings], groups, by_subset, rows, left_out)
