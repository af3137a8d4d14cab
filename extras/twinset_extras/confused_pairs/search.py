"""All pairs of rows with a cosine above a threshold: products of float32, then those near or above it exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Pairs = NDArray[np.int64]
BLOCK = 2048  # rows whose products are held together: 16 MiB
LOT = 4096  # pairs that are float64 at a time
MOST = 10_000_000  # pairs that are held


class TooMany(Exception):
    """More than `MOST` pairs are above the threshold."""


def cosines(features: Floats, pairs: Pairs) -> NDArray[np.float64]:
    """x·y of each pair of rows of norm 1.

    Products of float32 are exact in float64, and the order of their sum is fixed: the same bits on every machine.
    """
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), LOT):
        some = pairs[start : start + LOT]
        terms = features[some[:, 0]].astype(np.float64) * features[some[:, 1]]
        while (width := terms.shape[1]) > 1:  # the second half is added to the first
            half = (width + 1) // 2
            terms[:, : width - half] += terms[:, half:]
            terms = terms[:, :half]
        found[start : start + LOT] = terms[:, 0]
    return found


def alike(features: Floats, above: float) -> tuple[Pairs, NDArray[np.float64]]:
    """Pairs of rows i < j with a cosine above a threshold, in order, and their cosines; the same on every machine.

    Args:
        features: of norm 1, shape (n, d).

    Raises:
        TooMany: there are more than `MOST`.
    """
    least = above - features.shape[1] * np.finfo(np.float32).eps  # float32 is off by less
    parts, held = [(np.empty((0, 2), np.int64), np.empty(0))], 0
    for first in range(0, len(features), BLOCK):
        for second in range(first, len(features), BLOCK):
            products = features[first : first + BLOCK] @ features[second : second + BLOCK].T
            pairs = np.argwhere(products >= least) + np.array([first, second])
            pairs = pairs[pairs[:, 0] < pairs[:, 1]]
            found = cosines(features, pairs)
            good = found > above
            parts.append((pairs[good], found[good]))
            held += int(good.sum())
            if held > MOST:
                raise TooMany
    pairs, found = (np.concatenate(both) for both in zip(*parts, strict=True))
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], found[order]
