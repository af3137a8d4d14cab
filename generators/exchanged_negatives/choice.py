"""Which word each caption gets: words change places in pairs, as often as what captions say allows.

The words of a pool are shuffled among the places where captions have them. A step of the Metropolis algorithm exchanges
the words of two places. It is accepted with the ratio of two likelihoods, of the new words there and of the old. So
each word comes in as often as it goes out, and stands beside the words that it stands beside in captions. In the end a
word stays where no other caption has the new one beside one of its neighbours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SWEEPS = 100  # over all places
PRIOR = 0.1  # pseudo-count of the pool's word frequencies
STAY = 4.0  # how much less likely, as a logarithm, a place with its own word is made

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Goes = Callable[[Ints, Ints], Bools]


class PairCounts:
    """Counts of pairs of numbers, such as a place's neighbour and its word. Memory: 40 bytes a different pair."""

    def __init__(self, first: Ints, second: Ints, width: int) -> None:
        """Count pairs. first: any numbers. second, width: numbers from 0, and more than the largest of them."""
        self._width = width
        self._firsts, at, self._of_first = np.unique(first, return_inverse=True, return_counts=True)
        self._keys, self._counts = np.unique(at * width + second, return_counts=True)

    def both(self, first: Ints, second: Ints) -> Ints:
        """How often each pair was counted."""
        at, known = _found(self._firsts, first)
        place, counted = _found(self._keys, at * self._width + second)
        return np.where(known & counted, self._counts[place], 0) if len(self._keys) else np.zeros(len(first), np.int64)

    def first(self, first: Ints) -> Ints:
        """How often each first number was counted."""
        at, known = _found(self._firsts, first)
        return np.where(known, self._of_first[at], 0) if len(self._firsts) else np.zeros(len(first), np.int64)


def _found(ordered: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Where numbers stand among ordered ones, and whether they are there."""
    at: Ints = np.minimum(np.searchsorted(ordered, wanted), max(len(ordered) - 1, 0))
    there: Bools = ordered[at] == wanted if len(ordered) else np.zeros(len(wanted), np.bool_)
    return at, there


@dataclass(frozen=True, slots=True)
class Places:
    """Where words stand, one entry each. All are numbers of names; neighbours are such that pools share none.

    pool, word: as of a site. name: by word and pool, shared by its synonyms. photo: whose caption it is.
    neighbours: of each place, in any number of ways.
    """

    pool: Ints
    word: Ints
    name: Ints
    photo: Ints
    neighbours: Sequence[Ints]

    def __len__(self) -> int:
        return len(self.pool)


class Likely:
    """How likely captions make a word at a place, as a logarithm, up to what the place alone decides.

    log p(w) + sum over neighbours f of log((n(f, w) + PRIOR p(w)) / (n(f) + PRIOR) / p(w)): what each neighbour says of
    a word that its pool's shares do not. The place's own word is not counted.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        width = int(places.word.max()) + 1
        self._pairs = [PairCounts(one, places.word, width) for one in places.neighbours]
        inside = PairCounts(places.pool, places.word, width)
        self._inside = inside

    def __call__(self, at: Ints, words: Ints) -> NDArray[np.float64]:
        """Of words, each at a place."""
        places, own = self._places, words == self._places.word[at]
        shares = np.maximum(self._inside.both(places.pool[at], words), 1) / self._inside.first(places.pool[at])
        found = np.log(shares)
        for neighbour, pairs in zip(places.neighbours, self._pairs, strict=True):
            first = neighbour[at]
            counted = pairs.both(first, words) - own
            found += np.log((counted + PRIOR * shares) / (pairs.first(first) - 1 + PRIOR) / shares)
        return found

    def known(self, at: Ints, words: Ints) -> Bools:
        """Whether captions have other words, each at a place, beside all of its neighbours."""
        neighbours = self._places.neighbours
        met = [pairs.both(one[at], words) > 0 for one, pairs in zip(neighbours, self._pairs, strict=True)]
        found: Bools = np.all(met, axis=0) if met else np.ones(len(at), np.bool_)
        return found


def exchanged(places: Places, said: PairCounts, random: np.random.Generator, goes: Goes | None = None) -> Ints:
    """A word for each place; its own where it found no other.

    Args:
        places: at least one.
        said: counts of (photo, name) that captions of the photo say; none of these is put into another of them.
        random: decides the steps.
        goes: whether words of such names go with the rest of what is said at places.
    """
    likely = Likely(places)
    every, now, name = np.arange(len(places)), places.word.copy(), places.name.copy()
    scores = likely(every, now) - STAY
    for _ in range(SWEEPS):
        mixed = random.permutation(len(places))
        mixed = mixed[np.argsort(places.pool[mixed], kind="stable")]
        mixed = mixed[int(random.integers(2)) :]
        one, other = mixed[: len(mixed) // 2 * 2].reshape(-1, 2).T
        fits = (places.pool[one] == places.pool[other]) & (now[one] != now[other])
        fits &= _open(places, said, one, now[other], name[other]) & _open(places, said, other, now[one], name[one])
        one, other = one[fits], other[fits]
        if goes is not None:
            fits = goes(one, name[other]) & goes(other, name[one])
            one, other = one[fits], other[fits]
        gained = [_score(places, likely, *pair) for pair in ((one, now[other]), (other, now[one]))]
        accepted = np.log(random.random(len(one))) < sum(gained) - scores[one] - scores[other]
        one, other = one[accepted], other[accepted]
        now[one], now[other] = now[other], now[one]
        name[one], name[other] = name[other], name[one]
        scores[one], scores[other] = (found[accepted] for found in gained)
    return np.where(likely.known(every, now), now, places.word)


def _score(places: Places, likely: Likely, at: Ints, words: Ints) -> NDArray[np.float64]:
    return likely(at, words) - np.where(words == places.word[at], STAY, 0.0)


def _open(places: Places, said: PairCounts, at: Ints, words: Ints, names: Ints) -> Bools:
    """Whether a word may stand at a place: its own, or no synonym of that, whose name no caption of the photo says."""
    other = (names != places.name[at]) & (said.both(places.photo[at], names) == 0)
    found: Bools = (words == places.word[at]) | other
    return found


def swapped(
    heads: tuple[Ints, Ints], words: tuple[Ints, Ints], known: PairCounts, random: np.random.Generator
) -> Bools:
    """Which pairs of words change places: with the ratio of how likely captions make either, at most always.

    Args:
        heads: what the first words go with, and the second. words: those there now.
        known: counts of (head, word) in captions, these included.
        random: decides.
    """
    crossed = [known.both(heads[0], words[1]), known.both(heads[1], words[0])]
    own = [known.both(*one) - 1 for one in zip(heads, words, strict=True)]
    gain: NDArray[np.float64] = np.zeros(len(heads[0]))
    for one, sign in ((crossed[0], 1), (crossed[1], 1), (own[0], -1), (own[1], -1)):
        gain += sign * np.log(np.maximum(one, 0) + PRIOR)
    accepted: Bools = np.log(random.random(len(gain))) < gain
    return accepted
