"""Additions that words do not tell: beside each negative a caption of its length that has the like from the first.

One word more of a kind is told wherever captions of one length have as many of that kind as captions of others. So
lengths are dealt into blocks of three ranges, each as long as the shortest addition. Captions of the first range that
take part have no addition of their kind, those of the second have one, and the third has none that take part. To each
of the second belongs one of the first that is as long without what the other has, and is given just that at a like
noun: among captions of this length negatives and true ones have the same. Both of such two get a negative, or neither.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from twinset.generators.exchanged_negatives.choice import Bools, Ints, PairCounts
from twinset.generators.exchanged_negatives.sites import GIVEN
from twinset.generators.exchanged_negatives.table import Sites
from twinset.generators.exchanged_negatives.vocabulary import exchanges
from twinset.generators.negative_captions.rules.vocabulary import vocabulary

TRIES = 64  # of what is drawn for a place, and of places for what is given
USUAL = 0.15  # the share of its class that an adjective may have of a noun's: mostly red things may well be red
PRIOR = 5.0  # adjectives that a noun is thought to have besides, as often as all nouns have them
KNOWN = 2  # captions that must give the like
FINE, SURE = 1, 2  # how an addition fits: it is false probably, or by another caption of the photo


class Change(NamedTuple):
    """Rows of the table, and numbers of the words that each gets, which `Sites.names` has."""

    rows: Ints
    words: Ints


class Fits(Protocol):
    """How what is given fits at places, 0 where it does not."""

    def __call__(self, rows: Ints, items: Ints) -> Ints: ...


def added(sites: Sites, kind: str, random: np.random.Generator) -> Change:
    """Additions to both of each two captions. Those that other captions of a photo contradict are preferred."""
    rows, given = sites.of(kind), sites.of(GIVEN[kind])
    if not len(rows) or not len(given):
        return Change(rows[:0], rows[:0])
    fits: Fits = (_Adjectives if kind == "add_att" else _Things)(sites, given)
    level, part = np.bincount(sites.caption[given], minlength=len(sites.sizes)), _parts(sites, given)
    second, first = (rows[((level == at) & (part == at))[sites.caption[rows]]] for at in (1, 0))
    if kind == "add_att":  # captions of the second keep a noun without an adjective, so those of the first have two
        first = first[np.bincount(sites.caption[first], minlength=len(level))[sites.caption[first]] > 1]
    like = "head" if kind == "add_att" else "pool"
    place, item = _drawn(sites, like, second, given, fits, random)
    model = given[np.searchsorted(sites.caption[given], sites.caption[place])]
    other = _matched(sites, like, model, first, fits, random)
    found = other >= 0
    return Change(np.r_[place, other][np.r_[found, found]], sites.columns["word"][np.r_[item[found], model[found]]])


def _parts(sites: Sites, given: Ints) -> Ints:
    """In which range of a block each caption's length is: blocks begin where most captions with one addition count."""
    width = int(sites.columns["size"][given].min())
    sizes = sites.sizes[sites.caption[given]]
    start = max(range(3 * width), key=lambda one: int(np.sum((sizes - one) % (3 * width) // width == 1)))
    found: Ints = (sites.sizes - start) % (3 * width) // width
    return found


def _drawn(
    sites: Sites, like: str, rows: Ints, given: Ints, fits: Fits, random: np.random.Generator
) -> tuple[Ints, Ints]:
    """A place of each caption where something fits, and what: as often as captions give it to such nouns."""
    values = sites.columns[like]
    items = given[np.argsort(values[given], kind="stable")]
    keys, wanted = values[items], values[rows]
    best, chosen = np.zeros(len(rows), np.int64), np.full(len(rows), -1, np.int64)
    for at, item in _tries(keys, items, wanted, lambda: best < SURE, random):
        level = fits(rows[at], item)
        better = level > best[at]
        best[at[better]], chosen[at[better]] = level[better], item[better]
    ordered = np.lexsort((random.random(len(rows)), -best, sites.caption[rows]))
    ordered = ordered[chosen[ordered] >= 0]
    _, one = np.unique(sites.caption[rows[ordered]], return_index=True)
    return rows[ordered[one]], chosen[ordered[one]]


def _matched(sites: Sites, like: str, models: Ints, rows: Ints, fits: Fits, random: np.random.Generator) -> Ints:
    """For what each caption has a place in another one, as long without it; -1 where there is none.

    like: the column that both have in common.
    """
    most = int(sites.sizes.max(initial=0)) + 1
    pools, size = sites.columns[like], sites.columns["size"]
    rows = rows[np.argsort(pools[rows] * most + sites.sizes[sites.caption[rows]], kind="stable")]
    keys = pools[rows] * most + sites.sizes[sites.caption[rows]]
    wanted = pools[models] * most + sites.sizes[sites.caption[models]] - size[models]
    found, free = np.full(len(models), -1, np.int64), np.ones(len(sites.sizes), np.bool_)
    for least in (SURE, FINE):
        for at, row in _tries(keys, rows, wanted, lambda: found < 0, random):
            fitting = np.flatnonzero((fits(row, models[at]) >= least) & free[sites.caption[row]])
            _, one = np.unique(sites.caption[row[fitting]], return_index=True)
            found[at[fitting[one]]] = row[fitting[one]]
            free[sites.caption[row[fitting[one]]]] = False
    return found


def _tries(
    keys: Ints, items: Ints, wanted: Ints, open_: Callable[[], Bools], random: np.random.Generator
) -> Iterator[tuple[Ints, Ints]]:
    """Which of those wanted are open, and for each one of the items of its key. keys: in order."""
    start = np.searchsorted(keys, wanted)
    count = np.searchsorted(keys, wanted, "right") - start
    for _ in range(TRIES):
        at = np.flatnonzero(open_() & (count > 0))
        yield at, items[start[at] + (random.random(len(at)) * count[at]).astype(np.int64)]


class _Adjectives:
    """Of another colour than other captions of the photo give to the noun; of no usual one where there are none."""

    def __init__(self, sites: Sites, given: Ints) -> None:
        self._sites = sites
        head, word, klass = (sites.columns[name][given] for name in ("head", "word", "before"))
        count = len(sites.names)
        self._count = count
        self._said = self._classes_of_photos(sites, count)
        self._of_head, self._classes = PairCounts(head, word, count), PairCounts(head, klass, count)
        self._of_class = PairCounts(klass, word, count)

    @staticmethod
    def _classes_of_photos(sites: Sites, count: int) -> PairCounts:
        rows = sites.of("replace_att")
        photo, head, klass = (sites.columns[name][rows] for name in ("image_id", "head", "pool"))
        return PairCounts(photo, head * count + klass, count * count)

    def __call__(self, rows: Ints, items: Ints) -> Ints:
        columns = self._sites.columns
        head, photo = columns["head"][rows], columns["image_id"][rows]
        word, klass = columns["word"][items], columns["before"][items]
        own, known = self._of_head.both(head, word), self._classes.both(head, klass)
        share = self._of_class.both(klass, word) / self._of_class.first(klass)
        rare = own + PRIOR * share <= USUAL * (known + PRIOR)
        told = self._said.both(photo, head * self._count + klass) > 0
        free = (self._sites.said.both(photo, columns["name"][items]) == 0) & (own >= KNOWN)
        alone = self._sites.seen.captions(photo) == 1
        level: Ints = np.where(free, np.where(told, SURE, np.where(rare & alone, FINE, 0)), 0)
        return level


class _Things:
    """That captions put so beside such nouns and name with all that the caption names, and would name were it there."""

    def __init__(self, sites: Sites, given: Ints) -> None:
        self._sites, count = sites, len(sites.names)
        head, before, after, name = (sites.columns[one][given] for one in ("head", "before", "after", "name"))
        # What stands in the caption already: "a boat next to a bicycle next to a man".
        self._has = PairCounts(sites.caption[given], before, count)
        self._of_head, self._of_kind = PairCounts(head, before, count), PairCounts(after * count + before, name, count)
        people, several = vocabulary().people, exchanges().several
        self._people = np.array([name in people for name in sites.names])
        self._several = np.flatnonzero([name in several for name in sites.names])

    def __call__(self, rows: Ints, items: Ints) -> Ints:
        columns, caption, said = self._sites.columns, self._sites.caption[rows], self._sites.said
        before, name, photo = columns["before"][items], columns["name"][items], columns["image_id"][rows]
        fits = (said.both(photo, name) == 0) & (self._has.both(caption, before) == 0)
        fits &= self._of_head.both(columns["head"][rows], before) >= KNOWN
        fits &= self._of_kind.both(columns["after"][rows] * len(self._sites.names) + before, name) >= KNOWN
        for several in self._several.tolist():  # "a group of people": one may be a man
            fits &= ~self._people[name] | (said.both(photo, np.full_like(photo, several)) == 0)
        level: Ints = (fits & self._sites.seen(photo, name) & self._sites.company(caption, name)).astype(np.int64)
        return level
