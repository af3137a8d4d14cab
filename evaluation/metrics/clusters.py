"""Sums of events within each cluster (a source image or video), and how many clusters have the same sums.

The bootstrap needs no more: clusters with the same sums are exchangeable.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.outcomes import Codes, Truth
from twinset.evaluation.score_files.opening import Digests

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
        sums of events within a cluster, shape (p, events); how many clusters have them, shape (p,).
    """
    if groups is None:
        histogram = np.bincount(codes, minlength=len(truth))
        present = np.flatnonzero(histogram)
        return truth[present].astype(np.int64), histogram[present]
    found = [(np.empty((0, truth.shape[1]), np.int32), np.empty(0, np.int64))]
    for rows, begins in whole_clusters(groups):
        sums = np.add.reduceat(truth[codes[rows]], begins, axis=0, dtype=np.int32)
        found.append(distinct_rows(sums, np.ones(len(sums), np.int64)))
    return distinct_rows(np.concatenate([sums for sums, _ in found]), np.concatenate([counts for _, counts in found]))


def whole_clusters(groups: Digests) -> Iterator[tuple[slice, Counts]]:
    """Slices of sorted rows that cut no cluster, with the places in each slice where its clusters begin."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    first = 0
    while first < len(begins):
        after = max(first + 1, int(np.searchsorted(begins, begins[first] + _ROWS)))
        end = int(begins[after]) if after < len(begins) else len(groups)
        yield slice(int(begins[first]), end), begins[first:after] - begins[first]
        first = after


def distinct_rows(rows: Integers, counts: Counts) -> tuple[Integers, Counts]:
    """The different rows in the order of their bytes, little-endian, with the sums of their counts."""
    rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
    # Rows as byte strings of one length sort much faster than with `axis=0`.
    opaque = rows.view(f"S{rows.shape[1] * rows.itemsize}").ravel()
    order = np.argsort(opaque, kind="stable")
    opaque = opaque[order]
    begins = np.flatnonzero(np.concatenate([[True], opaque[1:] != opaque[:-1]]))
    return rows[order[begins]], np.add.reduceat(counts[order], begins)
