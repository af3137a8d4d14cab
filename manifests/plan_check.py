"""Whether a plan keeps its two promises: every key once, and the candidates of a group one after the other."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from manifests.candidate import Candidate
from manifests.errors import WrongUse


class PlanCheck:
    """Watches candidates go by and holds 8 bytes of a hash for each key, and for each group of several candidates."""

    def __init__(self) -> None:
        self._keys, self._groups = array("Q"), array("Q")

    def watch(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        """The same candidates."""
        before: tuple[str, str] | None = None
        for candidate in candidates:
            self._keys.append(_hash(candidate.key))
            group = candidate.split, candidate.group
            # A group that is named like its only candidate is told apart by its key.
            if group != before and candidate.group != candidate.key:
                self._groups.append(_hash("\0".join(group)))
            before = group
            yield candidate

    def finish(self, origin: str, again: Callable[[], Iterator[Candidate]]) -> None:
        """Raise `WrongUse` when a key is repeated or a group is interrupted.

        Args:
            origin: what messages name, such as the annotation file.
            again: the same candidates from the start, to name those at fault: equal hashes are no proof.
        """
        keys, groups = _repeated(self._keys), _repeated(self._groups)
        if not keys and not groups:
            return
        met: dict[str, str] = {}
        left: set[tuple[str, str]] = set()
        before: tuple[str, str] | None = None
        for candidate in again():
            group = candidate.split, candidate.group
            if _hash(candidate.key) in keys:
                if candidate.key in met:
                    raise WrongUse(
                        f"{origin}: {candidate.key} is planned twice, in group {met[candidate.key]} and in group "
                        f"{candidate.group}; correct the annotation, which repeats a source identity"
                    )
                met[candidate.key] = candidate.group
            if group != before and group in left:
                raise WrongUse(
                    f"{origin}: the candidates of group {candidate.group} do not follow each other ({candidate.key} "
                    "comes after another group); a source must plan a group in one piece: sort what it reads by group"
                )
            if before is not None and group != before and _hash("\0".join(before)) in groups:
                left.add(before)
            before = group


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _repeated(hashes: array[int]) -> set[int]:
    values = np.frombuffer(hashes, dtype=np.uint64)
    values = values.copy() if not values.flags.writeable else values
    values.sort()  # in place: the array has done its work
    return {int(value) for value in values[1:][values[1:] == values[:-1]]}
