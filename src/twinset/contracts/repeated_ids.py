"""Finds texts that are repeated among millions, holding 8 bytes of each."""

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
        """The ids that may have been met twice; nothing can be added afterwards."""
        hashes = np.frombuffer(self._hashes, dtype=np.uint64)
        hashes.sort()  # in place: a copy of millions would double the memory
        return Suspects({int(value) for value in hashes[1:][hashes[1:] == hashes[:-1]]})


class Suspects:
    """Ids that may be repeated. Asked for all ids in order, `place_before` says where a repeated one was met first."""

    def __init__(self, hashes: set[int]) -> None:
        self._hashes = hashes
        self._places: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def __contains__(self, identifier: str) -> bool:
        return bool(self._hashes) and _hash(identifier) in self._hashes

    def place_before(self, identifier: str, place: str) -> str | None:
        """The place where an id was met before; None at its first."""
        if identifier not in self:
            return None
        if identifier in self._places:
            return self._places[identifier]
        self._places[identifier] = place
        return None


def _hash(identifier: str) -> int:
    hashed = hashlib.blake2b(identifier.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), "big")
