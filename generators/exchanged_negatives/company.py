"""What captions name together, and what all captions of a photo name: what else may be said of it, and be false."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

PHOTOS = 2  # that must name two things together
LIFT = 0.3  # of the photos that would name both, if either came by chance
UNSEEN = 0.05  # the probability that no caption of a photo names a thing which is there
SHRUNK = 50  # pairs of captions of which a thing is thought to have the share that all have


class Company:
    """Pairs of what captions name: memory is 9 bytes for each thing and each other word."""

    def __init__(self, things: Ints, named: Sequence[Sequence[str]], names: Sequence[str], photo: Ints) -> None:
        """Count pairs by photo.

        Args:
            things: numbers in ``names`` of what may be put in.
            named: what each caption names.
            names: texts by number.
            photo: of each caption.
        """
        codes: dict[str, int] = {}
        self._named = np.array([codes.setdefault(one, len(codes)) for some in named for one in some], np.int64)
        self._count = np.array([len(some) for some in named], np.int64)
        self._start = np.cumsum(self._count) - self._count
        self._code = np.array([codes.get(one, -1) for one in names], np.int64)
        self._row = np.full(len(names), -1, np.int64)
        known = things[self._code[things] >= 0]
        self._row[known] = np.arange(len(known))
        self._fits = self._counted(known, len(codes), photo)

    def _counted(self, things: Ints, width: int, photo: Ints) -> Bools:
        """Whether each thing goes with each word."""
        row = np.full(width, -1, np.int64)
        row[self._code[things]] = np.arange(len(things))
        owner = np.repeat(np.arange(len(self._count)), self._count)
        first = np.flatnonzero(row[self._named] >= 0)
        at, second = self._all_of(owner[first])
        photos = np.unique(photo, return_inverse=True)[1]
        pairs = (photos[owner[first]][at] * len(things) + row[self._named[first]][at]) * width + self._named[second]
        together = np.bincount(np.unique(pairs) % (len(things) * width), minlength=len(things) * width)
        alone = np.bincount(np.unique(photos[owner] * width + self._named) % width, minlength=width)
        together = together.reshape(len(things), width)
        chance = np.outer(alone[self._code[things]], alone) / max(int(photos.max(initial=0)) + 1, 1)
        fits: Bools = (together >= PHOTOS) & (together >= LIFT * chance)
        return fits

    def _all_of(self, captions: Ints) -> tuple[Ints, Ints]:
        """All that captions name: which of ``captions``, and where."""
        count = self._count[captions]
        at = np.repeat(np.arange(len(captions)), count)
        return at, self._start[captions][at] + np.arange(len(at)) - (np.cumsum(count) - count)[at]

    def __call__(self, captions: Ints, names: Ints, own: Ints | None = None) -> Bools:
        """Whether a thing goes with all that a caption names, but for what it replaces."""
        at, where = self._all_of(captions)
        named, row = self._named[where], self._row[names][at]
        misses = (row < 0) | ~self._fits[row, named]
        if own is not None:
            misses &= named != self._code[own][at]
        found: Bools = np.bincount(at[misses], minlength=len(captions)) == 0
        return found


class Seen:
    """How surely captions name what their photo shows, by how often two of a photo agree on it."""

    def __init__(self, photo: Ints, captions: Ints, names: Ints) -> None:
        """Count. photo: of each caption. captions, names: each name that a caption says, once."""
        self._photos, count = np.unique(photo, return_counts=True)
        self._count: Ints = count
        width = int(names.max(initial=0)) + 1
        pairs, met = np.unique(np.searchsorted(self._photos, photo[captions]) * width + names, return_counts=True)
        others, name = count[pairs // width] - 1, pairs % width
        agreed, asked = (np.bincount(name, met * some, width) for some in (met - 1, others))
        usual = agreed.sum() / asked.sum() if asked.any() else 1.0  # one caption a photo tells nothing
        self._agreed = (agreed + SHRUNK * usual) / (asked + SHRUNK)

    def captions(self, photo: Ints) -> Ints:
        """Of each photo."""
        found: Ints = self._count[np.searchsorted(self._photos, photo)]
        return found

    def __call__(self, photo: Ints, names: Ints) -> Bools:
        """Whether a caption of each photo would have named a thing that is there."""
        found: Bools = (1 - self._agreed[names]) ** self.captions(photo) <= UNSEEN
        return found
