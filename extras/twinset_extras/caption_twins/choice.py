"""Which twins are taken: no photograph and no word too often, and rare words first."""

from dataclasses import dataclass

import numpy as np

from twinset_extras.caption_twins.search import U64, Numbers

MOST_PAIRS = 64  # of photographs that are connected: they stay together in one shard


@dataclass(frozen=True, slots=True)
class Limits:
    """How often a photograph, a word and two words are used, at most."""

    image: int
    word: int
    words: int


def choose(photo: Numbers, line: Numbers, order: U64, limits: Limits) -> list[list[int]]:
    """Groups of pairs that have photographs in common, as places in the arrays.

    Pairs of rare words come first, then in the order of random numbers; a pair is taken if its photographs are not
    paired yet and no limit is passed.

    Args:
        photo, line: of both sides of each pair (`caption_twins.search.Twins`).
        order: a random number a pair.
        limits: of uses.
    """
    words = line.min(axis=1) << 16 | line.max(axis=1)
    _, which, often = np.unique(words, return_inverse=True, return_counts=True)
    of_image, of_word, of_words = dict[int, int](), dict[int, int](), dict[int, int]()
    paired = set[tuple[int, int]]()
    groups = Groups()
    taken: list[int] = []
    for at in np.lexsort((order, often[which])).tolist():
        photos = sorted(photo[at].tolist())
        counted = [(of_image, number, limits.image) for number in photos]
        counted += [(of_word, number, limits.word) for number in line[at].tolist()]
        counted.append((of_words, int(words[at]), limits.words))
        if any(uses.get(number, 0) >= most for uses, number, most in counted) or (photos[0], photos[1]) in paired:
            continue
        if groups.joined(*photos):
            paired.add((photos[0], photos[1]))
            taken.append(at)
            for uses, number, _ in counted:
                uses[number] = uses.get(number, 0) + 1
    by_group: dict[int, list[int]] = {}
    for at in sorted(taken):
        by_group.setdefault(groups.root(int(photo[at, 0])), []).append(at)
    return list(by_group.values())


class Groups:
    """Sets of connected photographs, of `MOST_PAIRS` pairs at most."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._pairs: dict[int, int] = {}

    def root(self, photo: int) -> int:
        """The photograph that stands for a group."""
        while (parent := self._parent.get(photo, photo)) != photo:
            self._parent[photo] = photo = self._parent.get(parent, parent)
        return photo

    def joined(self, photo: int, other_photo: int) -> bool:
        """Connect two photographs; False where the group would be too large."""
        roots = self.root(photo), self.root(other_photo)
        pairs = 1 + sum(self._pairs.get(root, 0) for root in set(roots))
        if pairs > MOST_PAIRS:
            return False
        self._parent[roots[1]] = roots[0]
        self._pairs[roots[0]] = pairs
        return True
