"""Adversarial refinement (SugarCrepe, section 3.3): as many gaps on one side as on the other, cell by cell of a grid.

The gap of a pair is the score of its caption less that of its negative, in one or several scores. A grid lies over the
gaps. A cell and its opposite, which has all signs reversed, keep equally many pairs, the larger one a random part. What
a model without the image learns from the scores is then right of half of the pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifests.canonical import canonical_json

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Cells = NDArray[np.int64]
Ranks = NDArray[np.uint64]

COARSE = 10  # bins of a gap where the gap of another score is exactly zero, as SugarCrepe's code has it


@dataclass(frozen=True, slots=True)
class Axis:
    """How gaps of one kind are laid on the grid.

    reach: the gap that the grid's last bin ends with; larger ones are in that bin too. 0: a bin for every whole number.
    """

    name: str
    reach: float


#: By name. VERA and CoLA are probabilities; of mean log-probabilities 2 nats a token are a lot.
AXES = {axis.name: axis for axis in (Axis("vera", 1.0), Axis("cola", 1.0), Axis("lm", 2.0), Axis("words", 0.0))}


def cells_of(gaps: Sequence[Floats], axes: Sequence[Axis], grid: int) -> Cells:
    """The cell of every pair.

    A gap g of reach r is in bin floor(|g| n / r) + 1, at most n, with its sign; a gap of 0 is in bin 0. n is ``grid``,
    but `COARSE` where the gap of another score is 0 (words aside: equal lengths are no rare event).

    Args:
        gaps: finite, one array of length n an axis.
        axes: of the gaps.
        grid: bins on each side of zero.

    Returns:
        (n, axes) signed bins.
    """
    zeros = np.zeros(len(gaps[0]), dtype=np.bool_)
    for gap, axis in zip(gaps, axes, strict=True):
        if axis.reach:
            zeros |= gap == 0
    bins = np.where(zeros, min(COARSE, grid), grid)
    columns = []
    for gap, axis in zip(gaps, axes, strict=True):
        if axis.reach:
            # A gap of the reach itself (1 of probabilities) would be in bin n + 1: a KeyError in the released code.
            found = np.minimum(np.floor(np.abs(gap) * (bins / axis.reach)), bins - 1).astype(np.int64) + 1
        else:
            found = np.minimum(np.abs(gap), grid).astype(np.int64)
        columns.append(np.where(gap == 0, 0, np.sign(gap).astype(np.int64) * found))
    return np.stack(columns, axis=1)


def balanced(cells: Cells, ranks: Ranks) -> Bools:
    """Which pairs are kept: all of cell 0, and of a cell and its opposite c and -c min(n(c), n(-c)) each.

    Args:
        cells: (n, axes) signed bins.
        ranks: of each pair; the larger cell keeps those of smallest rank.

    Returns:
        One entry a pair; the order of pairs makes no difference to what is kept, unless ranks are equal.
    """
    if not len(cells):
        return np.zeros(0, dtype=np.bool_)
    # One number a cell, so that the numbers of opposite cells add up to 2 * middle.
    width = 2 * int(np.abs(cells).max()) + 1
    weights = width ** np.arange(cells.shape[1], dtype=np.int64)
    middle = (width ** cells.shape[1] - 1) // 2
    code = cells @ weights + middle
    positive = code > middle
    pair = np.where(positive, code, 2 * middle - code)
    order = np.lexsort((ranks, positive, pair))
    pair, positive = pair[order], positive[order]
    # Of sorted values: where each side of a pair of cells begins, and how many are on the side.
    begins = np.flatnonzero(np.r_[True, (pair[1:] != pair[:-1]) | (positive[1:] != positive[:-1])])
    counts = np.diff(np.r_[begins, len(pair)])
    place = np.arange(len(pair)) - np.repeat(begins, counts)
    # The other side, if there is one, is the run before or after with the same pair of cells.
    quota = np.zeros(len(begins), dtype=np.int64)
    twins = np.flatnonzero(pair[begins][1:] == pair[begins][:-1])
    quota[twins] = quota[twins + 1] = np.minimum(counts[twins], counts[twins + 1])
    quota[pair[begins] == middle] = counts[pair[begins] == middle]
    kept = np.empty(len(pair), dtype=np.bool_)
    kept[order] = place < np.repeat(quota, counts)
    return kept


def refined(gaps: Sequence[Floats], axes: Sequence[Axis], grid: int, ranks: Ranks) -> Bools:
    """Which pairs adversarial refinement keeps; `cells_of` and `balanced` say what is what."""
    return balanced(cells_of(gaps, axes, grid), ranks)


def ranks_of(seed: int, stage: str, identities: Iterable[str]) -> Ranks:
    """A random number for each identity, which does not depend on the others."""
    secret = hashlib.blake2b(canonical_json([seed, stage, "refinement"]), digest_size=32).digest()
    hashes = (
        hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8, key=secret).digest() for one in identities
    )
    return np.frombuffer(b"".join(hashes), dtype=np.dtype(">u8")).astype(np.uint64)
