"""Takes rows in the order of a file and gives them back group by group, in memory that does not grow with the file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.score_files.identity import Digests
from twinset.manifests.errors import WrongUse

HELD = 1 << 18  # rows in memory; more go to a file
_RANGES = 1024  # of digests, equally wide: a part is one of them or several
_SHIFT = np.uint64(64 - 10)
Records = NDArray[Any]


class RowsByGroup:
    """Rows of numbered labels, codes and numbers, which share a group where they have its digest.

    The rows of a small file stay in memory. Those of a larger one lie in a temporary file, 12 bytes and 4 for each
    number, in runs of `HELD` rows ordered by range of digests; a part is read from all runs. Digests are as good as
    random, so parts are about as large as a run, unless single groups are larger.

    Args:
        numbers: of each row.
    """

    def __init__(self, numbers: int) -> None:
        self._kind = np.dtype([("group", "<u8"), ("label", "<u2"), ("code", "<u2"), ("numbers", "<f4", (numbers,))])
        self._held: list[Records] = []
        self._rows = 0
        self._file: IO[bytes] | None = None
        self._begins: list[NDArray[np.int64]] = []  # of each run: where in the file its ranges begin, and its end

    def add(
        self, groups: Digests, labels: NDArray[np.uint16], codes: NDArray[np.uint16], numbers: NDArray[np.floating[Any]]
    ) -> None:
        """Take in rows; all of shape (n,), but numbers of shape (n, numbers)."""
        rows = np.empty(len(groups), self._kind)
        rows["group"], rows["label"], rows["code"], rows["numbers"] = groups, labels, codes, numbers
        self._held.append(rows)
        self._rows += len(rows)
        if self._rows >= HELD:
            self._write()

    def parts(self) -> Iterator[Records]:
        """All rows as records ``group, label, code, numbers``, ordered by group and label; no part cuts a group."""
        if self._file is None:
            if self._held:
                yield _ordered(np.concatenate(self._held))
            return
        self._write()
        lengths = np.sum([np.diff(begins) for begins in self._begins], axis=0) // self._kind.itemsize
        first = 0
        while first < _RANGES:
            after = first + max(1, int(np.searchsorted(lengths[first:].cumsum(), HELD, side="right")))
            yield _ordered(np.concatenate([self._read(begins[first], begins[after]) for begins in self._begins]))
            first = after

    def close(self) -> None:
        """Delete the temporary file."""
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        if not self._held:
            return
        rows = np.concatenate(self._held)
        self._held, self._rows = [], 0
        ranges = (rows["group"] >> _SHIFT).astype(np.uint16)
        ends = np.bincount(ranges, minlength=_RANGES).cumsum()
        ordered = rows[np.argsort(ranges, kind="stable")]
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="twinset-scores-")  # noqa: SIM115 - `close` closes it
            begin = self._file.seek(0, os.SEEK_END)
            self._file.write(ordered.tobytes())
            self._file.flush()
        except OSError as error:
            where = tempfile.tempdir or "temporary folder"
            problem = f"{where}: cannot hold the rows of a large file while they are grouped: {error.strerror or error}"
            remedy = f"set TMPDIR to a folder with room for {self._kind.itemsize} bytes a row"
            raise WrongUse(f"{problem}; {remedy}") from error
        self._begins.append(begin + np.concatenate([[0], ends]) * self._kind.itemsize)

    def _read(self, begin: int, end: int) -> Records:
        assert self._file is not None
        self._file.seek(begin)
        return np.frombuffer(self._file.read(int(end - begin)), self._kind)


def _ordered(rows: Records) -> Records:
    """By group, then by label, then as they came."""
    rows = rows[np.argsort(rows["group"], kind="stable")]
    groups, labels = rows["group"], rows["label"]
    # Most often each group has one label: a second sort is not needed.
    if ((groups[1:] == groups[:-1]) & (labels[1:] != labels[:-1])).any():
        rows = rows[np.lexsort((labels, groups))]
    return rows
