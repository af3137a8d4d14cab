"""Adversarial refinement (SugarCrepe, section 3.3): as many gaps on one side as on the other, cell by cell of a grid.

The gap of a pair is the score of its caption less that of its negative, in one or several scores. A grid lies over the
gaps. A cell and its opposite, which has all signs reversed, keep equally many pairs, the larger one a random part. What
a model without the image learns from the scores is then right of half of the pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import canonical_json, mixed
from twinset.generators.caption_scores.scorers.scorer import scorer_of

if TYPE_CHECKING:
    import polars as pl

HASHED = 16  # characters of a key that are a hash
COARSE = 10  # bins of a gap where the gap of another score is exactly zero, as SugarCrepe's code has it
WORDS = "words"


def reach_of(name: str) -> float:
    """The gap in ``words`` or in a score that the grid's last bin ends with; larger ones are in that bin too.

    0: a bin for every whole number. Raises `UnknownKind` where no scorer here gives the score.
    """
    return 0.0 if name == WORDS else scorer_of(name)[1].reach


def cells_of(reaches: Sequence[float], grid: int) -> list[pl.Expr]:
    """The cell of every pair: signed bins, columns ``cell0``, ``cell1`` … of the gaps in ``gap0``, ``gap1`` …

    A gap g of reach r is in bin floor(|g| n / r) + 1, at most n, with its sign; a gap of 0 is in bin 0. n is ``grid``,
    but `COARSE` where the gap of another score is 0 (words aside: equal lengths are no rare event).

    Args:
        reaches: of the gaps (`reach_of`).
        grid: bins on each side of zero.
    """
    import polars as pl

    zeros = [pl.col(f"gap{axis}") == 0 for axis, reach in enumerate(reaches) if reach]
    bins = pl.when(pl.any_horizontal(*zeros)).then(min(COARSE, grid)).otherwise(grid) if zeros else pl.lit(grid)
    cells = []
    for axis, reach in enumerate(reaches):
        gap = pl.col(f"gap{axis}")
        size = pl.min_horizontal(gap.abs(), pl.lit(float(grid)))
        if reach:
            # A gap of the reach itself (1 of probabilities) would be in bin n + 1: a KeyError in the released code.
            size = pl.min_horizontal((gap.abs() * (bins / reach)).floor(), bins - 1) + 1
        cells.append((gap.sign() * size).cast(pl.Int64).alias(f"cell{axis}"))
    return cells


def refined(gaps: pl.DataFrame, reaches: Sequence[float], grid: int) -> pl.Series:
    """Whether adversarial refinement keeps each pair: all of cell 0, and of a cell and its opposite equally many.

    Args:
        gaps: ``gap0``, ``gap1`` … finite, and ``rank``: the larger of two cells keeps those of smallest rank, so that
            the order of pairs makes no difference.
        reaches, grid: as `cells_of`.
    """
    import polars as pl

    names = [f"cell{axis}" for axis in range(len(reaches))]
    cells = gaps.select("rank", *cells_of(reaches, grid))
    # A cell and its opposite are one cell and two sides: the sign of the first bin that is not 0.
    signs = (pl.when(pl.col(name) != 0).then(pl.col(name).sign()) for name in names)
    cells = cells.with_columns(side=pl.coalesce(*signs, pl.lit(0)))
    cells = cells.with_columns(pl.col(name) * pl.col("side") for name in names)
    own, pair = pl.len().over([*names, "side"]), pl.len().over(names)
    place = pl.col("rank").rank("ordinal").over([*names, "side"])
    return cells.select((pl.col("side") == 0) | (place <= pl.min_horizontal(own, pair - own))).to_series()


def ranks_of(seed: int, stage: str, keys: Sequence[str]) -> NDArray[np.uint64]:
    """A random number for each key, which does not depend on the others.

    Args:
        seed: of the recipe.
        stage: whose ranks they are.
        keys: of `contracts.canonical.sample_key`: their last 16 characters are a hash already.
    """
    hashed = hashlib.blake2b(canonical_json(["refinement", seed, stage]), digest_size=8).digest()
    secret = np.uint64(int.from_bytes(hashed, "big"))
    ends = np.array([key[-HASHED:].rjust(HASHED) for key in keys], f"S{HASHED}")
    first, second = ends.view("<u8").reshape(-1, 2).T
    return mixed(first + mixed(second + secret))
