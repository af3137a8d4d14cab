"""What score files say, as sums over groups of test examples: which rows are right in a figure, by arm and seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.score_kinds import group_column, kind_of
from twinset.evaluation.score_files.opening import digests, open_scores

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Right:
    """Rows of one score file.

    where: the file. keys, groups: digests of each row's, shape (n,). categories: of each row, shape (n,).
    flags: whether a row is right, by figure, shape (n,) each; a tie is wrong, as in all strict figures.
    """

    where: str
    keys: NDArray[np.uint64]
    groups: NDArray[np.uint64]
    categories: NDArray[np.str_]
    flags: Mapping[str, NDArray[np.bool_]]


def read_right(path: Path, figures: Sequence[str]) -> Right:
    """Read which rows of a score file are right, in the order of their keys.

    Args:
        figures: names as `evaluation.metrics` has them, such as ``group``, ``image`` or ``recall@1``.

    Raises:
        WrongUse: the file is broken, has no such figure, or has a key twice.
    """
    file = open_scores(path)
    kind, group = kind_of(file), group_column(file, None) or "key"
    keys, groups, categories, codes = [], [], list[str](), []
    for batch in file.batches([*kind.columns, "key", group, "category"]):
        keys.append(digests(batch, ["key"]))
        groups.append(digests(batch, [group], empty=False))
        categories += batch.columns["category"].to_pylist()
        codes.append(kind.outcomes(batch).code)
    key, code = np.concatenate(keys), np.concatenate(codes)
    order = np.argsort(key, kind="stable")
    if len(np.unique(key)) < len(key):
        raise WrongUse(f"{path}: a key occurs twice; score it again")
    flags = {}
    for figure in figures:
        share = kind.share(figure) if figure in kind.events else None
        if share is None:
            raise WrongUse(f"{path}: its scores have no figure {figure!r} that is a share of rows")
        flags[figure] = kind.truth[code, kind.events.index(share[0])].astype(bool)[order]
    return Right(str(path), key[order], np.concatenate(groups)[order], np.array(categories)[order], flags)


def percent(right: Right, figure: str, categories: Sequence[str] = ()) -> float:
    """Percent of rows that are right, of all or of some categories; NaN where there are none."""
    chosen = right.flags[figure]
    if categories:
        chosen = chosen[np.isin(right.categories, categories)]
    return float(100 * chosen.mean()) if len(chosen) else float("nan")


def paired(better: Sequence[Right], than: Sequence[Right], figure: str) -> tuple[Integers, Integers]:
    """Differences of two arms by seed and group, for `studies.science.bootstrap`.

    Args:
        better, than: of the same seeds, in the same order.

    Returns:
        Rows that ``better`` has right less those that ``than`` has, shape (seeds, groups), groups in the order of their
        digests; and rows of each group, shape (groups,).

    Raises:
        WrongUse: two files do not have the same rows.
    """
    first = better[0]
    for one in (*better, *than):
        if not (np.array_equal(one.keys, first.keys) and np.array_equal(one.groups, first.groups)):
            raise WrongUse(f"{one.where}: has other rows than {first.where}; score both on the same test set")
    _, places, counts = np.unique(first.groups, return_inverse=True, return_counts=True)
    added = np.zeros((len(better), len(counts)), np.int64)
    for seed, (a, b) in enumerate(zip(better, than, strict=True)):
        row_differences = a.flags[figure].astype(np.int64) - b.flags[figure]
        np.add.at(added[seed], places, row_differences)
    return added, counts.astype(np.int64)
