"""The bootstrap clustered by group: clusters are drawn with replacement, never rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.outcomes import Floats

_CELLS = 1_000_000  # weights at a time
#: A binomial number costs about as much as drawing and counting this many clusters.
_BINOMIAL = 12


def resampled(sums: NDArray[np.int64], counts: NDArray[np.int64], resamples: int, seed: int, label: str = "") -> Floats:
    """Sums of events over resamples of clusters.

    A resample draws as many clusters as there are, with replacement: their weights are multinomial. Clusters with the
    same sums share one weight, which is multinomial too, with their share of all clusters as its probability. So this
    is the bootstrap of clusters exactly, at the cost of one weight for each way to be a cluster.

    Args:
        sums: of events, for each way to be a cluster, shape (p, events).
        counts: clusters of each way, shape (p,).
        seed, label: of the random numbers: those of a label do not depend on which others there are.

    Returns:
        shape (resamples, events).
    """
    digest = hashlib.blake2b(label.encode(), digest_size=8).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    weighed = [weights @ sums.astype(np.float64) for weights in _weights(counts, resamples, rng)]
    return np.concatenate(weighed) if weighed else np.empty((0, sums.shape[1]))


def _weights(counts: NDArray[np.int64], resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Multinomial weights of the ways to be a cluster, in blocks of shape (some resamples, p).

    Ways that many clusters share get a binomial weight each. The clusters of rare ways are first one way together, then
    drawn one by one: a multinomial within a multinomial.
    """
    ways, clusters = len(counts), int(counts.sum())
    common = np.flatnonzero(counts >= _BINOMIAL)
    rare = np.flatnonzero(counts < _BINOMIAL)
    pool = np.repeat(rare, counts[rare])
    chances = np.append(counts[common], len(pool)) / clusters
    block = max(1, _CELLS // max(ways, len(pool)))
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        drawn = rng.multinomial(clusters, chances, size)
        weights = np.zeros((size, ways))
        weights[:, common] = drawn[:, :-1]
        if len(pool):
            # Each resample counts in its own row of the weights.
            row = np.repeat(np.arange(0, size * ways, ways), drawn[:, -1])
            place = pool[rng.integers(0, len(pool), len(row), np.uint32)]
            weights += np.bincount(row + place, minlength=size * ways).reshape(size, ways)
        yield weights


def interval(values: Floats) -> tuple[float | None, float | None]:
    """The 2.5 % and 97.5 % percentiles; resamples without any row of the kind (NaN) are left out; None for none."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None, None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
