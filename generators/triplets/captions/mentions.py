"""How often photos show a thing that none of their captions names, estimated from photos of several captions.

What captions leave out cannot be read in them, but it can be estimated from how unevenly they name it. Of 117 photos a
caption of which has the word "frisbee", one of five has it in 17, two in 11, three or more in 89: few can be left that
show one and have it in none. Of 1,147 with the word "jacket" one has it in 782, two in 244: as many again show one
unsaid. Ecology counts unseen species so; the estimate is Chao's (1987, Biometrics 43, 783-791), f1^2 / (2 f2), of
photos with one and with two captions that name the thing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinset.generators.triplets.columns import Codes, Floats, distinct

SEVERAL = 3  # captions of a photo, from which on it is counted
PHOTOS = 1000  # that many of which it takes to estimate anything
RELIABLE = 0.7  # odds up to which an object may be a target's: three of five photos that show it say so
PRIOR = 2.0  # added to the photos with one caption that names a noun, so that rare nouns are not taken for reliable


@dataclass(frozen=True, slots=True)
class Mentions:
    """Photos of `SEVERAL` captions or more, and what these name.

    odds: of each noun, the estimated number of photos that show it unsaid for each that says it. photos: that name
    each noun, one after the other; start: where those of each noun begin, and the end. highest: number of a photo.
    """

    odds: Floats
    photos: Codes
    start: NDArray[np.int64]
    highest: int

    def unsaid(self, subject: Codes, object_: Codes) -> Floats:
        """Of photos that name a subject, but not an object, the estimated share that show the object (0 to 1).

        Of the photos that say both nouns, odds times as many more show the object unsaid.
        """
        both = np.zeros(len(subject))
        says = np.zeros(self.highest + 1, dtype=np.bool_)
        for noun in np.unique(subject).tolist():
            own = self._of(noun)
            says[own] = True
            for at in np.flatnonzero(subject == noun).tolist():
                both[at] = says[self._of(int(object_[at]))].sum()
            says[own] = False
        silent = np.diff(self.start)[subject] - both
        return np.minimum(both * self.odds[object_] / np.maximum(silent, 1), 1.0)

    def _of(self, noun: int) -> Codes:
        return self.photos[self.start[noun] : self.start[noun + 1]]


def mentions_of(named: NDArray[np.int64], captions: NDArray[np.int64], nouns: int) -> Mentions | None:
    """The mentions of nouns; None where fewer than `PHOTOS` photos have `SEVERAL` captions.

    Args:
        named: photo << 32 | noun, once for each caption that names it, sorted; -1 is skipped.
        captions: of each photo, how many.
        nouns: how many there are.
    """
    several = captions >= SEVERAL
    if several.sum() < PHOTOS:
        return None
    named = named[named >= 0]
    named = named[several[named >> 32]]
    once = distinct(named)
    times = np.diff(np.append(np.searchsorted(named, once), len(named)))
    noun = once & 0xFFFFFFFF
    photos = np.bincount(noun, minlength=nouns)
    one, two = (np.bincount(noun[times == number], minlength=nouns) for number in (1, 2))
    # Chao's f1^2 / (2 f2) with the prior; 1 is added to f2, as in his bias-corrected form, because f2 can be 0.
    odds = (one + PRIOR) ** 2 / (2 * (two + 1)) / np.maximum(photos, 1)
    order = np.argsort(noun, kind="stable")
    start = np.concatenate([[0], np.cumsum(photos)])
    return Mentions(odds, (once >> 32)[order].astype(np.int32), start, int(once[-1] >> 32))
