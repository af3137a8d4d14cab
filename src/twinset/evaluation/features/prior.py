"""Removes from scores what a text gets without its image (VisualGPTScore, Lin et al. 2024).

    s'_ij = log P(t_j | i) - α log P(t_j | null image)

α is swept on one half of the groups and used on the other, each way: no group is scored with an α that saw it.
"""

import hashlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse

ALPHAS = np.arange(21) / 20
_COLUMNS = ("s00", "s01", "s10", "s11", "prior0", "prior1")
Values = NDArray[np.float32]


def without_prior(table: pa.Table, where: str) -> tuple[pa.Table, dict[str, float]]:
    """A table of scores without the prior, and ``alpha_0`` and ``alpha_1``, those of both halves. Rows without a prior,
    of which a pair was not answered, stay as they are. where: for messages. Raises `WrongUse`: all rows are of one
    group.
    """
    halves = np.array([half_of(group) for group in table["group"].to_pylist()])
    if len({*halves.tolist()}) < 2:
        raise WrongUse(f"{where}: too few groups to choose alpha on others; ask by visualgptscore, or more examples")
    values = np.stack([table[name].to_numpy() for name in _COLUMNS])
    alphas = [best_alpha(values[:, halves != half]) for half in (0, 1)]
    prior = np.array(alphas)[halves] * np.nan_to_num(values[4:])
    for place, name in enumerate(_COLUMNS[:4]):
        less = (values[place] - prior[place % 2]).astype(np.float32)
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(less, from_pandas=True))
    return table, {f"alpha_{half}": alpha for half, alpha in enumerate(alphas)}


def best_alpha(values: Values) -> float:
    """The least of `ALPHAS` with the most rows whose captions all go to their image.

    Args:
        values: of `_COLUMNS`, shape (6, rows); NaN where there is none.
    """
    s00, s01, s10, s11, prior0, prior1 = values
    apart = np.nan_to_num(prior0 - prior1)
    # A second image, where there is none, is right.
    right = [((s00 - s01 > alpha * apart) & (np.isnan(s10) | (s11 - s10 > -alpha * apart))).sum() for alpha in ALPHAS]
    return float(ALPHAS[int(np.argmax(right))])


def half_of(group: str) -> int:
    """0 or 1 by the group, as good as at random."""
    return hashlib.blake2b(group.encode(), digest_size=1).digest()[0] & 1
