"""The bootstrap clustered by group (a source image or video): clusters are drawn with replacement, never rows.

It needs no more than sums of events within each cluster: clusters with the same sums are exchangeable.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.outcomes import Codes, Floats, Truth
from twinset.evaluation.score_files.opening import Digests

Integers = NDArray[np.signedinteger[Any]]
Counts = NDArray[np.int64]


def alike(codes: Codes | Counts, truth: Truth | NDArray[np.int8], groups: Digests | None) -> tuple[Integers, Counts]:
    """Clusters with the same sums, counted; in an order that does not depend on that of the rows.

    Args:
        codes: of n rows, shape (n,).
        truth: what a code adds, shape (codes, events).
        groups: sorted, shape (n,); rows of one group are a cluster. None: every row is.

    Returns:
        sums of events within a cluster, shape (p, events); how many clusters have them, shape (p,).
    """
    if groups is None:
        histogram = np.bincount(codes, minlength=len(truth))
        present = np.flatnonzero(histogram)
        return truth[present].astype(np.int64), histogram[present]
    sums = np.add.reduceat(truth[codes], begins_of(groups), axis=0, dtype=np.int32)
    return distinct_rows(sums, np.ones(len(sums), np.int64))


def begins_of(groups: Digests) -> Counts:
    """Where clusters begin in sorted rows."""
    return np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))


def distinct_rows(rows: Integers, counts: Counts) -> tuple[Integers, Counts]:
    """The different rows in the order of their bytes, little-endian, with the sums of their counts."""
    rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
    # Rows as byte strings of one length sort much faster than with `axis=0`.
    opaque = rows.view(f"S{rows.shape[1] * rows.itemsize}").ravel()
    order = np.argsort(opaque, kind="stable")
    opaque = opaque[order]
    begins = np.flatnonzero(np.concatenate([[True], opaque[1:] != opaque[:-1]]))
    return rows[order[begins]], np.add.reduceat(counts[order], begins)


_CELLS = 1_000_000  # weights at a time
_DRAWS = 65_536  # clusters drawn and counted at a time: their counts stay in the processor's cache
_EXACT = 2**24  # integers up to here, and their sums, are exact in float32
#: A binomial number costs about as much as drawing and counting this many clusters.
_BINOMIAL = 12


def resampled(
    sums: NDArray[np.integer[Any]], counts: NDArray[np.int64], resamples: int, seed: int, label: str = ""
) -> Floats:
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
    if resamples < 0:
        raise WrongUse(f"resamples {resamples}: choose at least 1, or 0 for no intervals")
    digest = hashlib.blake2b(label.encode(), digest_size=8).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    # Integers in floating point: the products are exact in either type, and float32 takes half the memory.
    largest = max(int(sums.max(initial=0)), -int(sums.min(initial=0)))
    kind: type[np.floating[Any]] = np.float32 if int(counts.sum()) * largest < _EXACT else np.float64
    events = np.flatnonzero(sums.any(0))
    added = sums[:, events].astype(kind)
    found, first = np.zeros((resamples, sums.shape[1])), 0
    for weights in _weights(counts, resamples, rng, kind):
        found[first : first + len(weights), events] = weights @ added
        first += len(weights)
    return found


def _weights(
    counts: NDArray[np.int64], resamples: int, rng: np.random.Generator, kind: type[np.floating[Any]]
) -> Iterator[NDArray[np.floating[Any]]]:
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
    some = max(1, _DRAWS // max(ways, len(pool)))
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        drawn = rng.multinomial(clusters, chances, size)
        weights = np.zeros((size, ways), kind)
        weights[:, common] = drawn[:, :-1]
        for begin in range(0, size if len(pool) else 0, some):
            rows, taken = weights[begin : begin + some], drawn[begin : begin + some, -1]
            place = pool[rng.integers(0, len(pool), int(taken.sum()), np.uint32)]
            if len(rows) > 1:  # each resample counts in its own row of the weights
                place += np.repeat(np.arange(0, rows.size, ways), taken)
            rows += np.bincount(place, minlength=rows.size).reshape(rows.shape)
        yield weights


def interval(values: Floats) -> tuple[float | None, float | None]:
    """The 2.5 % and 97.5 % percentiles; resamples without any row of the kind (NaN) are left out; None for none."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None, None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
