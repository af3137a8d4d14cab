"""The changes that negatives of each kind make, chosen from the whole table of `caption-words`."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from twinset.generators.exchanged_negatives.choice import Ints, PairCounts, Places, exchanged, swapped
from twinset.generators.exchanged_negatives.sites import PHRASE
from twinset.generators.exchanged_negatives.vocabulary import exchanges
from twinset.generators.exchanged_negatives.words import SAID
from twinset.shards.finished_stage import FinishedStage

TRIES = 16  # of an addition: what is drawn for a caption may be said of its photo already
USUAL = 0.15  # the share of a class that an added adjective may have of a noun's: mostly red things may well be red
LEAST = 7  # adjectives of the class that a noun must have been given, for that share to be known
_TEXTS = ("image_id", "kind", "pool", "word", "name", "before", "after", "head", "other", "other_head")


class Change(NamedTuple):
    """Rows of the table, and numbers of the words that each gets, which `Sites.names` has."""

    rows: Ints
    words: Ints


@dataclass
class Sites:
    """The table in columns of numbers. names: of all texts, which all columns number alike. caption: of each row."""

    names: list[str]
    columns: Mapping[str, Ints]
    caption: Ints

    def of(self, *kinds: str) -> Ints:
        """The rows of kinds."""
        known = [self._numbers[kind] for kind in kinds if kind in self._numbers]
        return np.flatnonzero(np.isin(self.columns["kind"], known))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def said(self) -> PairCounts:
        """Counts of (photo, name) that captions say."""
        rows = self.of(SAID)
        met = [
            [self._numbers[one] for one in self.names[word].split() if one in self._numbers]
            for word in self.columns["word"][rows].tolist()
        ]
        photos = np.repeat(self.columns["image_id"][rows], [len(one) for one in met])
        names = np.fromiter(chain.from_iterable(met), np.int64, len(photos))
        return PairCounts(photos, names, len(self.names))

    def chosen(self, kind: str, random: np.random.Generator) -> Change:
        """One change for each caption that a kind can change."""
        rows, words = _CHOICES[kind](self, kind, random)
        order = random.permutation(len(rows))
        _, first = np.unique(self.caption[rows[order]], return_index=True)
        return Change(rows[order[first]], words[order[first]])


def load_sites(earlier: FinishedStage) -> Sites:
    """Read a table of `caption-words`; memory: some 100 bytes a row, and its distinct texts."""
    codes: dict[str, int] = {}
    parts: dict[str, list[Ints]] = {name: [np.empty(0, np.int64)] for name in (*_TEXTS, "caption")}
    captions, last = 0, None
    for batch in earlier.batches(("caption_id", *_TEXTS)):
        for name in _TEXTS:
            parts[name].append(_coded(batch[name], codes))
        ids = batch["caption_id"].dictionary_encode()
        places = ids.indices.to_numpy()
        begins = np.r_[ids.dictionary[0].as_py() != last, places[1:] != places[:-1]]
        parts["caption"].append(captions + np.cumsum(begins) - 1)
        captions += int(begins.sum())
        last = ids.dictionary[int(places[-1])].as_py()
    whole = {name: np.concatenate(some) for name, some in parts.items()}
    return Sites(list(codes), {name: whole[name] for name in _TEXTS}, whole["caption"])


def _coded(texts: pa.Array, codes: dict[str, int]) -> Ints:
    encoded = texts.dictionary_encode()
    known = np.array([codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()], np.int64)
    found: Ints = known[encoded.indices.to_numpy()]
    return found


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
        [pool * len(sites.names) + columns[name] for name in ("before", "after", "head")],
    )
    now = exchanged(places, sites.said, random)
    moved = now != places.word
    return Change(rows[moved], now[moved])


def _swapped(sites: Sites, kind: str, random: np.random.Generator) -> Change:
    rows, told = sites.of(kind), sites.of(kind.replace("swap", "replace"))
    columns = {name: values[rows] for name, values in sites.columns.items()}
    known = PairCounts(sites.columns["head"][told], sites.columns["word"][told], len(sites.names))
    heads, words = (columns["head"], columns["other_head"]), (columns["word"], columns["other"])
    accepted = swapped(heads, words, known, random)
    return Change(rows[accepted], words[1][accepted])


def _attributes(sites: Sites, kind: str, random: np.random.Generator) -> Change:
    """Adjectives that captions give to the noun, but none that most such things have."""
    rows, given = sites.of(kind), sites.of("replace_att")
    given = given[np.argsort(sites.columns["head"][given], kind="stable")]
    head, word, pool = (sites.columns[name][given] for name in ("head", "word", "pool"))
    of_class = PairCounts(head, pool, len(sites.names)).both(head, pool)
    usual = PairCounts(head, word, len(sites.names)).both(head, word) > USUAL * of_class
    added = [number for number, name in enumerate(sites.names) if name in exchanges().added]
    fits = (of_class >= LEAST) & ~usual & np.isin(word, added)
    return _drawn(sites, rows, sites.columns["head"][rows], given[fits], head[fits], random)


def _things(sites: Sites, kind: str, random: np.random.Generator) -> Change:
    """What other captions that have the last noun say behind it at their end."""
    rows, phrases = sites.of(kind), sites.of(PHRASE)
    phrases = phrases[np.argsort(sites.columns["head"][phrases], kind="stable")]
    return _drawn(sites, rows, sites.columns["head"][rows], phrases, sites.columns["head"][phrases], random)


def _drawn(sites: Sites, rows: Ints, wanted: Ints, given: Ints, under: Ints, random: np.random.Generator) -> Change:
    """For places one of what is given under their name, that no caption of their photo says.

    A name that has something given n times and stands alone m times is given something with chance n / m, at most 1: so
    each name gets each addition about as often as captions have it.

    Args:
        rows, wanted: places, and a name for each.
        given, under: rows whose words are drawn, sorted by the name that they are given under.
    """
    starts = np.searchsorted(under, wanted)
    counts = np.searchsorted(under, wanted, "right") - starts
    _, codes, alone = np.unique(wanted, return_inverse=True, return_counts=True)
    counts[random.random(len(rows)) * alone[codes] > counts] = 0
    found, photo = np.full(len(rows), -1, np.int64), sites.columns["image_id"]
    for _ in range(TRIES):
        at = np.flatnonzero((found < 0) & (counts > 0))
        drawn = given[starts[at] + (random.random(len(at)) * counts[at]).astype(np.int64)]
        free = sites.said.both(photo[rows[at]], sites.columns["name"][drawn]) == 0
        found[at[free]] = drawn[free]
    there = found >= 0
    return Change(rows[there], sites.columns["word"][found[there]])


_CHOICES: Mapping[str, Callable[[Sites, str, np.random.Generator], Change]] = {
    "replace_obj": _replaced,
    "replace_att": _replaced,
    "replace_rel": _replaced,
    "swap_obj": _swapped,
    "swap_att": _swapped,
    "add_obj": _things,
    "add_att": _attributes,
}


def all_changes(sites: Sites, kinds: Collection[str], random: np.random.Generator) -> Iterator[tuple[str, Change]]:
    """The changes of each kind."""
    for kind in kinds:
        yield kind, sites.chosen(kind, random)
