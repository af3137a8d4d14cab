"""Relations with the object of a target and another subject, drawn evenly without drawing twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from generators.triplets.graphs import Codes
from generators.triplets.pool import Bools, Pool


class OtherSubjects:
    """For each pair of subject and object: the relations with that object, but not that subject, that may distract.

    count: how many there are, of each pair.
    """

    def __init__(self, pool: Pool, allowed: Bools) -> None:
        """allowed: of each relation of the pool."""
        among = allowed[pool.by_object]
        before = np.concatenate([[0], np.cumsum(among)])  # of each place in by_object: allowed ones that lie before it
        self._relations = pool.by_object[among]
        self._start = before[pool.object_start[pool.object]]
        own = pool.object_start[pool.object] + pool.in_object
        self._own_start, own_end = before[own], before[own + pool.count]
        self._own_count = own_end - self._own_start
        end = before[pool.object_start[pool.object] + pool.object_count[pool.object]]
        self.count = (end - self._start - self._own_count).astype(np.int32)

    def at(self, pair: Codes, number: NDArray[np.int64]) -> Codes:
        """The relation with a number from 0 up to ``count`` of each pair."""
        place = self._start[pair] + number
        place += np.where(place >= self._own_start[pair], self._own_count[pair], 0)  # the pair's own lie together
        return self._relations[place]
