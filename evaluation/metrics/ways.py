"""Counts equal rows of integers, holding each different row once and in the narrowest type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = (np.int8, np.int16, np.int32, np.int64)
_WAITING = 65_536  # rows that are merged into the known ones at a time, at least
Integers = NDArray[np.signedinteger[Any]]


class Ways:
    """Different rows of integers and how often each was added.

    A row takes a byte a number where all numbers are small, and 8 bytes for its count. A dictionary takes ten times as
    much.
    """

    def __init__(self, width: int) -> None:
        self._known = np.empty((0, width), np.int8), np.empty(0, np.int64)
        self._fresh: list[tuple[Integers, NDArray[np.int64]]] = []
        self._waiting = 0

    def add(self, rows: NDArray[np.integer[Any]], counts: NDArray[np.int64] | None = None) -> None:
        """Count rows, shape (n, width); ``counts``: how often each was met, shape (n,), else once."""
        if not len(rows):
            return
        found = _distinct(rows.astype(_narrowest(rows)), np.ones(len(rows), np.int64) if counts is None else counts)
        self._fresh.append(found)
        self._waiting += len(found[1])
        # A merge costs as much as all known rows: it waits until there are as many new ones.
        if self._waiting > max(_WAITING, len(self._known[1])):
            self._merge()

    def counted(self) -> tuple[Integers, NDArray[np.int64]]:
        """The different rows, shape (p, width), and the count of each, shape (p,).

        Rows are in the order of their bytes, little-endian. So equal input in any order gives equal output, and rows
        with the same first number lie together.
        """
        self._merge()
        return self._known

    def _merge(self) -> None:
        if not self._fresh:
            return
        chunks = [self._known, *self._fresh]
        self._fresh, self._waiting = [], 0
        kind = np.result_type(*(rows.dtype for rows, _ in chunks))
        rows = np.concatenate([rows.astype(kind, copy=False) for rows, _ in chunks])
        self._known = _distinct(rows, np.concatenate([counts for _, counts in chunks]))


def _narrowest(rows: NDArray[np.integer[Any]]) -> type[np.signedinteger[Any]]:
    low, high = int(rows.min(initial=0)), int(rows.max(initial=0))
    return next(kind for kind in _TYPES if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def _distinct(rows: Integers, counts: NDArray[np.int64]) -> tuple[Integers, NDArray[np.int64]]:
    """The different rows in the order of their bytes, with the sums of their counts."""
    rows = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))
    # Rows as byte strings of one length sort much faster than with `axis=0`, and the same for every type of integer:
    # a wider type adds bytes of 0 or, below 0, of 255 to both of two numbers that are compared.
    opaque = rows.view(f"S{rows.shape[1] * rows.itemsize}").ravel()
    order = np.argsort(opaque, kind="stable")
    opaque = opaque[order]
    begins = np.flatnonzero(np.concatenate([[True], opaque[1:] != opaque[:-1]]))
    return rows[order[begins]], np.add.reduceat(counts[order], begins)
