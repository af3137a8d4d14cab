"""Whether a plan keeps its two promises: every key once, and the candidates of a group one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from twinset.manifests.candidate import Candidate
from twinset.manifests.errors import WrongUse
from twinset.manifests.repeated_ids import Ids


class PlanCheck:
    """Watches candidates go by and holds 8 bytes of a hash for each key, and for each group of several candidates.

    kinds: candidates by what they are counted as (`Candidate.counted_as`).
    """

    def __init__(self) -> None:
        self.kinds = Counter[str]()
        self._keys, self._groups = Ids(), Ids()

    def watch(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        """The same candidates."""
        before: tuple[str, str] | None = None
        for candidate in candidates:
            self._keys.add(candidate.key)
            if candidate.counted_as:
                self.kinds[candidate.counted_as] += 1
            group = candidate.split, candidate.group
            # A group that is named like its only candidate is told apart by its key.
            if group != before and candidate.group != candidate.key:
                self._groups.add("\0".join(group))
            before = group
            yield candidate

    def finish(self, origin: str, again: Callable[[], Iterator[Candidate]]) -> None:
        """Raise `WrongUse` when a key is repeated or a group is interrupted.

        Args:
            origin: what messages name, such as the annotation file.
            again: the same candidates from the start, to name those at fault: equal hashes are no proof.
        """
        keys, groups = self._keys.suspects(), self._groups.suspects()
        if not keys and not groups:
            return
        left: set[tuple[str, str]] = set()
        before: tuple[str, str] | None = None
        for candidate in again():
            group = candidate.split, candidate.group
            if (first := keys.place_before(candidate.key, candidate.group)) is not None:
                raise WrongUse(
                    f"{origin}: {candidate.key} is planned twice, in group {first} and in group {candidate.group}; "
                    "correct the annotation, which repeats a source identity"
                )
            if group != before and group in left:
                raise WrongUse(
                    f"{origin}: the candidates of group {candidate.group} do not follow each other ({candidate.key} "
                    "comes after another group); a source must plan a group in one piece: sort what it reads by group"
                )
            if before is not None and group != before and "\0".join(before) in groups:
                left.add(before)
            before = group
