"""Sums of events within each cluster (a source image or video), and how many clusters have the same sums.

The bootstrap needs no more: clusters with the same sums are exchangeable. A way to be a cluster takes memory once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.outcomes import Codes, Truth
from twinset.evaluation.metrics.ways import Ways
from twinset.evaluation.score_files.identity import Digests

_ROWS = 65_536  # of which clusters are summed at a time
Integers = NDArray[np.signedinteger[Any]]
Counts = NDArray[np.int64]


def alike(codes: Codes | Counts, truth: Truth | NDArray[np.int8], groups: Digests | None) -> tuple[Integers, Counts]:
    """Clusters with the same sums, counted; in an order that does not depend on that of the rows.

    Args:
        codes: of n rows, shape (n,).
        truth: what a code adds, shape (codes, events).
        groups: sorted, shape (n,); rows of one group are a cluster. None: every row is.

    Returns:
        sums of events within a cluster in a narrow type, shape (p, events); how many clusters have them, shape (p,).
    """
    if groups is None:
        return of_histogram(np.bincount(codes, minlength=len(truth)), truth)
    ways = Ways(truth.shape[1])
    for rows, begins in whole_clusters(groups):
        ways.add(np.add.reduceat(truth[codes[rows]], begins, axis=0, dtype=np.int64))
    return ways.counted()


def of_histogram(histogram: Counts, truth: NDArray[np.int8] | Truth) -> tuple[Integers, Counts]:
    """As `alike`, of rows that are clusters of their own; histogram: rows of each code, shape (codes,)."""
    present = np.flatnonzero(histogram)
    return truth[present].astype(np.int64), histogram[present]


def whole_clusters(groups: Digests) -> Iterator[tuple[slice, Counts]]:
    """Slices of sorted rows that cut no cluster, with the places in each slice where its clusters begin."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    first = 0
    while first < len(begins):
        after = max(first + 1, int(np.searchsorted(begins, begins[first] + _ROWS)))
        end = int(begins[after]) if after < len(begins) else len(groups)
        yield slice(int(begins[first]), end), begins[first:after] - begins[first]
        first = after
