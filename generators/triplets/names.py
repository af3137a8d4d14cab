"""Names of images as numbers, without a dictionary of millions of addresses in memory."""

from collections.abc import Iterator
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.generators.triplets.draws import NONE, Codes

BLOCK = 1 << 16  # names that are looked at together


class Names:
    """Numbers of names: equal for equal ones, in the order in which each comes first.

    Names are compared by their hashes, and those of equal hashes by themselves: where two differ, all are hashed again
    with another beginning.

    numbers: of each name. different: how many different ones there are.
    """

    def __init__(self, names: pa.Array) -> None:
        self._names = names
        for attempt in count():
            self._salt = str(attempt or "")
            self._hashes, first, which = np.unique(self._hashed(names), return_index=True, return_inverse=True)
            if self._equal(names, first[which]):
                break
        self._first = first
        self._number = np.empty(len(first), dtype=np.int32)
        self._number[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        self.numbers: Codes = self._number[which]
        self.different = len(first)

    def find(self, names: pa.Array) -> Codes:
        """The number of each of other names, `NONE` for one that is not there."""
        hashes = self._hashed(names)
        at = np.minimum(np.searchsorted(self._hashes, hashes), self.different - 1)
        there = np.flatnonzero(self._hashes[at] == hashes)
        found = np.full(len(names), NONE, dtype=np.int32)
        equal = pc.equal(names.take(pa.array(there)), self._names.take(pa.array(self._first[at[there]])))
        there = there[equal.to_numpy(zero_copy_only=False)]
        found[there] = self._number[at[there]]
        return found

    def _equal(self, names: pa.Array, same: NDArray[np.int64]) -> bool:
        """Whether each name equals the one at the place that is given for it."""
        others = np.flatnonzero(same != np.arange(len(names)))
        return all(names.take(pa.array(here)).equals(names.take(pa.array(same[here]))) for here in _blocks(others))

    def _hashed(self, names: pa.Array) -> NDArray[np.int64]:
        blocks = (names.slice(start, BLOCK).to_pylist() for start in range(0, len(names), BLOCK))
        hashes = (hash(f"{self._salt}{name}" if self._salt else name) for block in blocks for name in block)
        return np.fromiter(hashes, np.int64, len(names))


def _blocks(places: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    yield from (places[start : start + BLOCK] for start in range(0, len(places), BLOCK))
