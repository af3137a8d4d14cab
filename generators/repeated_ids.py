"""Finds ids that are repeated, holding 8 bytes an id."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

import numpy as np


class Ids:
    """Ids that were met, as 64-bit hashes: equal hashes are a suspicion, which reading the ids again confirms."""

    def __init__(self, identifiers: Iterable[str] = ()) -> None:
        self._hashes = array("Q", map(_hash, identifiers))

    def add(self, identifier: str) -> None:
        """Note that an id was met."""
        self._hashes.append(_hash(identifier))

    def suspects(self) -> Suspects:
        """The ids that may have been met twice."""
        ordered = np.sort(np.frombuffer(self._hashes, dtype=np.uint64))
        return Suspects({int(value) for value in ordered[1:][ordered[1:] == ordered[:-1]]})


class Suspects:
    """Ids that may be repeated. Asked for all ids in order, `place_before` says where a repeated one was met first."""

    def __init__(self, hashes: set[int]) -> None:
        self._hashes = hashes
        self._places: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def place_before(self, identifier: str, place: str) -> str | None:
        """The place where an id was met before; None at its first."""
        if not self._hashes or _hash(identifier) not in self._hashes:
            return None
        if identifier in self._places:
            return self._places[identifier]
        self._places[identifier] = place
        return None


def _hash(identifier: str) -> int:
    return int.from_bytes(hashlib.blake2b(identifier.encode(), digest_size=8).digest(), "big")
