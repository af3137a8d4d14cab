"""The changes that negatives of each kind make, chosen from the whole table of `caption-words`."""

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from twinset.generators.exchanged_negatives.additions import Change, added
from twinset.generators.exchanged_negatives.choice import Bools, Ints, PairCounts, Places, exchanged, swapped
from twinset.generators.exchanged_negatives.table import Sites

#: What a word has beside it.
_BESIDE = ("before", "after", "head", "other_head")


def _replaced(sites: Sites, kind: str, random: np.random.Generator) -> Change:
    rows = sites.of(kind)
    if not len(rows):
        return Change(rows, rows)
    columns = {name: values[rows] for name, values in sites.columns.items()}
    pool = columns["pool"]
    places = Places(
        pool,
        columns["word"],
        columns["name"],
        columns["image_id"],
        [pool * len(sites.names) + columns[name] for name in _BESIDE],
    )

    def goes(at: Ints, names: Ints) -> Bools:
        own = columns["name"][at]
        photo, caption = columns["image_id"][at], sites.caption[rows[at]]
        found: Bools = (names == own) | (sites.seen(photo, names) & sites.company(caption, names, own))
        return found

    now = exchanged(places, sites.said, random, goes if kind == "replace_obj" else None)
    moved = now != places.word
    return Change(rows[moved], now[moved])


def _swapped(sites: Sites, kind: str, random: np.random.Generator) -> Change:
    rows, told = sites.of(kind), sites.of(kind.replace("swap", "replace"))
    columns = {name: values[rows] for name, values in sites.columns.items()}
    known = PairCounts(sites.columns["head"][told], sites.columns["word"][told], len(sites.names))
    heads, words = (columns["head"], columns["other_head"]), (columns["word"], columns["other"])
    accepted = swapped(heads, words, known, random)
    beside = PairCounts(sites.columns["before"][told], sites.columns["word"][told], len(sites.names))
    for before, word in ((columns["before"], words[1]), (columns["after"], words[0])):
        accepted &= beside.both(before, word) > 0  # "a flatbed truck", but no "flatbed bus"
    return Change(rows[accepted], words[1][accepted])


_CHOICES: Mapping[str, Callable[[Sites, str, np.random.Generator], Change]] = {
    "replace_obj": _replaced,
    "replace_att": _replaced,
    "replace_rel": _replaced,
    "swap_obj": _swapped,
    "swap_att": _swapped,
    "add_obj": added,
    "add_att": added,
}


def all_changes(sites: Sites, kinds: Collection[str], random: np.random.Generator) -> Iterator[tuple[str, Change]]:
    """One change of each kind for each caption that it can change."""
    for kind in kinds:
        rows, words = _CHOICES[kind](sites, kind, random)
        order = random.permutation(len(rows))
        _, first = np.unique(sites.caption[rows[order]], return_index=True)
        yield kind, Change(rows[order[first]], words[order[first]])
