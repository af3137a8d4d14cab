"""Captions in columns: hashes of their words and of any part of them, and the photos that they belong to."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.canonical import mixed
from twinset.generators.captions.tables import Caption
from twinset.generators.scene_graphs.source import photo_of
from twinset.generators.triplets.captions import APART, BATCH
from twinset.generators.triplets.draws import U64, Bools, Codes

Numbers = NDArray[np.int64]
ARTICLES = frozenset({"a", "an", "the"})  # what differs in these alone is the same
LONGEST = 100  # words of a caption that is looked at
WORD = re.compile(r"[^\W_]+")

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_POWERS = np.array([pow(_BASE, power, 1 << 64) for power in range(LONGEST + 1)], dtype=np.uint64)
_INVERSE = np.array([pow(_BASE, -power, 1 << 64) for power in range(LONGEST + 1)], dtype=np.uint64)


def span_of(caption: str, phrase: str, start: int) -> tuple[int, int]:
    """The characters of a phrase in a caption. start: number of its first word, articles not counted."""
    words = [found for found in WORD.finditer(caption) if found[0].lower() not in ARTICLES]
    last = start + len(phrase.split()) - 1
    return words[start].start(), words[last].end()


def hash_of(word: str) -> int:
    """64 bits of a word, the same in every process."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")


def phrase_hashes(phrases: Sequence[str]) -> U64:
    """The hash of each phrase, as `Captions.spans` gives it."""
    hashed = [
        sum(hash_of(word) * pow(_BASE, at, 1 << 64) for at, word in enumerate(phrase.split())) for phrase in phrases
    ]
    return np.array([one % (1 << 64) for one in hashed], dtype=np.uint64)


class Columns:
    """A dataclass whose fields are arrays with a row for each of some items."""

    def take(self, chosen: Numbers | Bools) -> Self:
        """Some of them."""
        return self._with(lambda name: getattr(self, name)[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """One after the other, at least one."""
        return parts[0]._with(lambda name: np.concatenate([getattr(part, name) for part in parts]))

    def _with(self, column: Callable[[str], NDArray[Any]]) -> Self:
        named: Any = self
        return type(self)(*(column(one.name) for one in fields(named)))


@dataclass(frozen=True, slots=True)
class Spans(Columns):
    """Some words of captions. caption: of each; start: number of the first word in it; words: how many there are."""

    caption: Codes
    start: Codes
    words: Codes


class Captions:
    """Captions that have words enough, of each photo those that differ.

    texts, ids, image_ids, images, packed terms: of each caption, as `Caption` has them. photo: its number, in the order
    of photos. length: words of each. Memory: the texts, and 20 bytes a word.
    """

    def __init__(self, captions: Iterable[Caption]) -> None:
        texts: dict[str, list[pa.Array]] = {name: [] for name in ("caption", "caption_id", "image_id", "image")}
        photos, terms = list[pa.Array](), list[pa.Array]()
        sums: list[U64] = []
        lengths: list[Codes] = []
        known: dict[str, int] = {}
        reading = iter(captions)
        while batch := list(islice(reading, BATCH)):
            for name, column in texts.items():
                column.append(pa.array([getattr(one, name) for one in batch], pa.large_string()))
            terms.append(pa.array([one.terms.packed for one in batch]).dictionary_encode())
            photos.append(pa.array([photo_of(one.image_id) for one in batch], pa.large_string()).dictionary_encode())
            summed, length = _hashed(texts["caption"][-1], known)
            sums.append(summed)
            lengths.append(length)
        self._columns = {name: pa.chunked_array(column, pa.large_string()) for name, column in texts.items()}
        self._columns["terms"] = pa.chunked_array(terms, pa.dictionary(pa.int32(), pa.string()))
        encoded = pa.chunked_array(photos, pa.dictionary(pa.int32(), pa.large_string())).unify_dictionaries()
        self.photo: Codes = np.concatenate([np.empty(0, np.int32), *(one.indices for one in encoded.chunks)])
        names = encoded.chunk(0).dictionary.to_pylist() if len(self.photo) else []
        self._photo_hash = np.array([hash_of(name) for name in names], dtype=np.uint64)
        self.length = np.concatenate([np.empty(0, np.int32), *lengths])
        self._sums = np.concatenate([np.empty(0, np.uint64), *sums])
        # A caption of n words has n + 1 sums: of none, of one, of two … of its words.
        self._first = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.length.astype(np.int64) + 1)])

    def __len__(self) -> int:
        return len(self.photo)

    @property
    def photos(self) -> int:
        """How many there are."""
        return len(self._photo_hash)

    def column(self, name: str, captions: Codes | Numbers) -> list[str]:
        """A column of some captions: ``caption``, ``caption_id``, ``image_id``, ``image`` or ``terms``."""
        return list(self._columns[name].take(pa.array(captions)).to_pylist())

    def of_photos(self, name: str, photos: Codes) -> list[list[str]]:
        """A column of all captions of each of some photos, in order."""
        order, first = self._by_photo
        rows = [order[first[photo] : first[photo + 1]] for photo in photos.tolist()]
        texts = self.column(name, np.concatenate([np.empty(0, np.int64), *rows]))
        ends = np.cumsum([len(row) for row in rows]).tolist()
        return [texts[end - len(row) : end] for row, end in zip(rows, ends, strict=True)]

    @cached_property
    def _by_photo(self) -> tuple[Numbers, Numbers]:
        """Captions in the order of photos, and where those of each begin."""
        order = np.argsort(self.photo, kind="stable")
        return order, np.searchsorted(self.photo[order], np.arange(self.photos + 1))

    @cached_property
    def hashes(self) -> U64:
        """Of each caption: equal for those with the same words."""
        return mixed(self._sums[self._first[1:] - 1] ^ self.length.astype(np.uint64))

    def random(self, salt: np.uint64) -> U64:
        """A number of each caption that depends on its words, its photo and a salt, not on what else there is."""
        return mixed(self.hashes + self._photo_hash[self.photo] * np.uint64(_BASE) + salt)

    def repeated(self) -> Bools:
        """Whether a photo has each caption before already, by its words."""
        key = mixed(self.hashes + self.photo.astype(np.uint64) * np.uint64(_BASE))
        again = np.ones(len(self), dtype=np.bool_)
        again[np.unique(key, return_index=True)[1]] = False
        return again

    def spans(self, words: int, first: int, last: int) -> tuple[Spans, U64]:
        """All runs of some words in captions first … last - 1, and what each says as a hash (`phrase_hashes`)."""
        many = np.maximum(self.length[first:last] - (words - 1), 0)
        caption = np.repeat(np.arange(first, first + len(many), dtype=np.int32), many)
        start = np.arange(len(caption)) - np.repeat(np.cumsum(many, dtype=np.int64) - many, many)
        at = self._first[caption] + start
        said = (self._sums[at + words] - self._sums[at]) * _INVERSE[start]
        return Spans(caption, start.astype(np.int32), np.full(len(caption), words, np.int32)), said

    def without(self, spans: Spans) -> U64:
        """A hash of each caption without a span of it, and of where it was."""
        first = self._first[spans.caption]
        before = self._sums[first + spans.start]
        after = self._sums[first + self.length[spans.caption]] - self._sums[first + spans.start + spans.words]
        left = self.length[spans.caption] - spans.words
        place = (spans.start.astype(np.uint64) << np.uint64(32)) | left.astype(np.uint64)
        return mixed((before + after * _INVERSE[spans.words]) ^ mixed(place + np.uint64(1)))


def _hashed(captions: pa.Array, known: dict[str, int]) -> tuple[U64, Codes]:
    """Sums of the hashes of each caption's first 0, 1, 2 … words, times powers of a base; and how many words it has.

    Captions longer than `LONGEST` count as having none. known: hashes of words; those that are new are added.
    """
    tokens = pc.split_pattern_regex(pc.utf8_lower(captions), APART)
    caption = pc.list_parent_indices(tokens).to_numpy()
    encoded = pc.list_flatten(tokens).dictionary_encode()
    dictionary = encoded.dictionary.to_pylist()
    for word in dictionary:
        if word not in known:
            known[word] = hash_of(word)
    counts = np.array([word != "" and word not in ARTICLES for word in dictionary], dtype=np.bool_)
    code = encoded.indices.to_numpy()
    kept = counts[code]
    caption, code = caption[kept], code[kept]
    length = np.bincount(caption, minlength=len(captions)).astype(np.int32)
    short = length <= LONGEST
    kept = short[caption]
    caption, code = caption[kept], code[kept]
    length[~short] = 0
    first = np.cumsum(length, dtype=np.int64) - length
    place = np.arange(len(code)) - first[caption]
    hashes = np.array([known[word] for word in dictionary], dtype=np.uint64)
    summed = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes[code] * _POWERS[place])])
    # Sums within a caption: those of the batch, less what came before it.
    row = np.repeat(np.arange(len(length)), length + 1)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(length + 1) - (length + 1), length + 1)
    return np.asarray(summed[first[row] + nth] - summed[first[row]]), length
