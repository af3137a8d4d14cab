"""Adversarial refinement (SugarCrepe, section 3.3): as many gaps on one side as on the other, cell by cell of a grid.

The gap of a pair is the score of its caption less that of its negative, in one or several scores. A grid lies over the
gaps. A cell and its opposite, which has all signs reversed, keep equally many pairs, the larger one a random part. What
a model without the image learns from the scores is then right of half of the pairs.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.canonical import canonical_json, mixed
from twinset.generators.caption_scores.scorers.scorer import scorer_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Cells = NDArray[np.int64]
Ranks = NDArray[np.uint64]

HASHED = 16  # characters of a key that are a hash
COARSE = 10  # bins of a gap where the gap of another score is exactly zero, as SugarCrepe's code has it


WORDS = "words"


def reach_of(name: str) -> float:
    """The gap in ``words`` or in a score that the grid's last bin ends with; larger ones are in that bin too.

    0: a bin for every whole number. Raises `UnknownKind` where no scorer here gives the score.
    """
    return 0.0 if name == WORDS else scorer_of(name)[1].reach


def cells_of(gaps: Sequence[Floats], reaches: Sequence[float], grid: int) -> Cells:
    """The cell of every pair.

    A gap g of reach r is in bin floor(|g| n / r) + 1, at most n, with its sign; a gap of 0 is in bin 0. n is ``grid``,
    but `COARSE` where the gap of another score is 0 (words aside: equal lengths are no rare event).

    Args:
        gaps: finite, one array of length n an axis.
        reaches: of the gaps (`reach_of`).
        grid: bins on each side of zero.

    Returns:
        (n, axes) signed bins.
    """
    zeros = np.zeros(len(gaps[0]), dtype=np.bool_)
    for gap, reach in zip(gaps, reaches, strict=True):
        if reach:
            zeros |= gap == 0
    bins = np.where(zeros, min(COARSE, grid), grid)
    columns = []
    for gap, reach in zip(gaps, reaches, strict=True):
        if reach:
            # A gap of the reach itself (1 of probabilities) would be in bin n + 1: a KeyError in the released code.
            found = np.minimum(np.floor(np.abs(gap) * (bins / reach)), bins - 1).astype(np.int64) + 1
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
    pair = np.where(code > middle, code, 2 * middle - code)
    if middle >= 1 << 30:  # many axes: cells that hold nothing get no number
        pair = np.unique(pair, return_inverse=True)[1]
    side = 2 * pair + (code > middle)
    # Sorted by side and rank in one number, which numpy sorts several times as fast as by two keys.
    bits = max(int(side.max()).bit_length(), 1)
    order = np.argsort((side.astype(np.uint64) << np.uint64(64 - bits)) | (ranks >> np.uint64(bits)))
    sides = side[order]
    # Where each side of a pair of cells begins, and how many are on the side.
    begins = np.flatnonzero(np.r_[True, sides[1:] != sides[:-1]])
    counts = np.diff(np.r_[begins, len(sides)])
    place = np.arange(len(sides)) - np.repeat(begins, counts)
    # The other side, if there is one, is the run after that of the same pair of cells.
    quota = np.zeros(len(begins), dtype=np.int64)
    twins = np.flatnonzero(sides[begins][1:] >> 1 == sides[begins][:-1] >> 1)
    quota[twins] = quota[twins + 1] = np.minimum(counts[twins], counts[twins + 1])
    zero = code[order[begins]] == middle
    quota[zero] = counts[zero]
    kept = np.empty(len(sides), dtype=np.bool_)
    kept[order] = place < np.repeat(quota, counts)
    return kept


def refined(gaps: Sequence[Floats], reaches: Sequence[float], grid: int, ranks: Ranks) -> Bools:
    """Which pairs adversarial refinement keeps; `cells_of` and `balanced` say what is what."""
    return balanced(cells_of(gaps, reaches, grid), ranks)


def ranks_of(seed: int, stage: str, keys: Iterable[pa.Array]) -> Ranks:
    """A random number for each key, which does not depend on the others.

    Args:
        seed: of the recipe.
        stage: whose ranks they are.
        keys: of `contracts.canonical.sample_key`, in batches: their last 16 characters are a hash already.
    """
    hashed = hashlib.blake2b(canonical_json(["refinement", seed, stage]), digest_size=8).digest()
    secret, found = np.uint64(int.from_bytes(hashed, "big")), [np.empty(0, np.uint64)]
    for batch in keys:
        ends = pc.utf8_slice_codeunits(pc.utf8_lpad(batch, HASHED), -HASHED, None)
        first, second = np.array(ends.to_numpy(zero_copy_only=False), f"S{HASHED}").view("<u8").reshape(-1, 2).T
        found.append(mixed(first + mixed(second + secret)))
    return np.concatenate(found)
