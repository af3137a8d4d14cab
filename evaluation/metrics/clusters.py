"""Sums of events within each cluster (a source image or video), and how many clusters have the same sums.

The bootstrap needs no more: clusters with the same sums are exchangeable. A way to be a
cluster takes memory once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.outcomes import Codes, Truth
from evaluation.score_files.identity import Digests

_ROWS = 65_536  # of which clusters are summed at a time
Integers = NDArray[np.int64]


def alike(
    codes: Codes | Integers, truth: Truth | NDArray[np.int8], groups: Digests | None
) -> tuple[Integers, Integers]:
    """Clusters with the same sums, counted; in an order that does not depend on that of the rows.

    Args:
        codes: of n rows, shape (n,).
        truth: what a code adds, shape (codes, events).
        groups: sorted, shape (n,); rows of one group are a cluster. None: every row is.

    Returns:
        sums of events within a cluster, shape (p, events), and how many clusters have these sums, shape (p,).
    """
    if groups is None:
        return of_histogram(np.bincount(codes, minlength=len(truth)), truth)
    counted: dict[bytes, int] = {}
    for rows, begins in _whole_clusters(groups):
        sums = np.ascontiguousarray(np.add.reduceat(truth[codes[rows]], begins, axis=0, dtype=np.int64))
        # Rows as opaque bytes sort much faster than with `axis=0`.
        opaque = sums.view(np.dtype((np.void, sums.shape[1] * sums.itemsize))).ravel()
        values, counts = np.unique(opaque, return_counts=True)
        for value, count in zip(values, counts.tolist(), strict=True):
            counted[value.tobytes()] = counted.get(value.tobytes(), 0) + count
    known = sorted(counted)
    sums = np.frombuffer(b"".join(known), np.int64).reshape(len(known), truth.shape[1])
    return sums, np.array([counted[one] for one in known], np.int64)


def of_histogram(histogram: Integers, truth: NDArray[np.int8] | Truth) -> tuple[Integers, Integers]:
    """As `alike`, of rows that are clusters of their own; histogram: rows of each code, shape (codes,)."""
    present = np.flatnonzero(histogram)
    return truth[present].astype(np.int64), histogram[present]


def _whole_clusters(groups: Digests) -> Iterator[tuple[slice, Integers]]:
    """Slices of sorted rows that cut no cluster, with the places in each slice where its clusters begin."""
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    first = 0
    while first < len(begins):
        after = max(first + 1, int(np.searchsorted(begins, begins[first] + _ROWS)))
        end = int(begins[after]) if after < len(begins) else len(groups)
        yield slice(int(begins[first]), end), begins[first:after] - begins[first]
        first = after


def clustered_error(numbers: NDArray[np.float32], groups: Digests) -> tuple[float, float]:
    """Mean of numbers and its standard error, robust to clusters.

    Linearised, as the mean is a ratio of sums over clusters: with n_g numbers in cluster g of G, and sum S_g,
    mean = ΣS_g / Σn_g and error² = G / (G - 1) · Σ(S_g - mean · n_g)² / (Σn_g)².

    Args:
        groups: of the numbers, sorted, shape (n,).

    Returns:
        mean, standard error; NaN for fewer than 2 clusters.
    """
    mean, clusters, squares = float(numbers.mean(dtype=np.float64)), 0, 0.0
    for rows, begins in _whole_clusters(groups):
        sums = np.add.reduceat(numbers[rows] - np.float64(mean), begins)
        clusters += len(sums)
        squares += float(np.square(sums).sum())
    return mean, math.sqrt(clusters / (clusters - 1) * squares) / len(numbers) if clusters > 1 else math.nan
