"""Captions that are the same but for one word or phrase of the lists, and what all captions of each photo say."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import accumulate
from sys import intern
from typing import Self

import numpy as np
from numpy.typing import NDArray

from twinset.generators.captions.tables import Caption
from twinset.generators.mixing import mixed
from twinset_extras.caption_twins.vocabulary import Vocabulary

U64 = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Bools = NDArray[np.bool_]
ARTICLES = frozenset({"a", "an", "the"})  # what differs in these alone is the same
LONGEST = 100  # words of a caption that is looked at
LONGEST_PHRASE = 3
SEVERAL = 3  # captions of a photo, of which two must name what is believed
FEWEST = 2  # words beside the one that differs
WINDOW = 8  # captions that one is compared with, where more are the same but for one word
WORD = re.compile(r"[^\W_]+")

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_MODULUS = 1 << 64
_POWERS = [pow(_BASE, power, _MODULUS) for power in range(LONGEST + 1)]
_INVERSE = np.array([pow(_BASE, -power, _MODULUS) for power in range(LONGEST + 1)], dtype=np.uint64)


def span_of(caption: str, phrase: str, start: int) -> tuple[int, int]:
    """The characters of a phrase in a caption. start: number of its first word, articles not counted."""
    words = [match for match in WORD.finditer(caption) if match[0].lower() not in ARTICLES]
    last = start + len(phrase.split()) - 1
    return words[start].start(), words[last].end()


@cache
def hash_of(word: str) -> int:
    """64 bits of a word, the same in every process."""
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")


def sums_of(words: Iterable[str]) -> list[int]:
    """Sums of the hashes of the first 0, 1, 2 … words, times powers of a base, modulo 2^64."""
    terms = (hash_of(word) * power for word, power in zip(words, _POWERS, strict=False))
    return [total % _MODULUS for total in accumulate(terms, initial=0)]


class Captions:
    """Captions with the number of the photo that each is of, and its words without articles.

    rows: as they are read. words: none of a caption of more than `LONGEST`. of_photo: numbers of each photo's captions.
    hashes: equal for captions with the same words.
    """

    def __init__(self, captions: Iterable[Caption]) -> None:
        self.rows, self.words, self.of_photo = list[Caption](), list[tuple[str, ...]](), list[list[int]]()
        numbers, photo = dict[str, int](), list[int]()
        for number, caption in enumerate(captions):
            words = tuple(intern(word) for word in WORD.findall(caption.caption.lower()) if word not in ARTICLES)
            photo.append(numbers.setdefault(caption.image_id, len(numbers)))
            if photo[-1] == len(self.of_photo):
                self.of_photo.append([])
            self.of_photo[photo[-1]].append(number)
            self.rows.append(caption)
            self.words.append(words if len(words) <= LONGEST else ())
        self.photo = np.array(photo, np.int64)
        self._photo_hash = np.array([hash_of(name) for name in numbers], np.uint64)
        length = np.array([len(words) for words in self.words], np.uint64)
        self.hashes = mixed(np.array([sums_of(words)[-1] for words in self.words], np.uint64) ^ length)

    def random(self, salt: np.uint64) -> U64:
        """A number of each caption that depends on its words, its photo and a salt, not on what else there is."""
        return mixed(self.hashes + self._photo_hash[self.photo] * np.uint64(_BASE) + salt)


class Columns:
    """A dataclass of arrays with a row for each of some items."""

    def take(self, chosen: Numbers | Bools) -> Self:
        """Some of them."""
        return type(self)(*(getattr(self, column.name)[chosen] for column in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Phrases(Columns):
    """Where captions have phrases.

    caption: of each; start: number of its first word there; words: how many; which: its number in the list that was
    searched; rest: a hash of the caption without it, and of where it was.
    """

    caption: Numbers
    start: Numbers
    words: Numbers
    which: Numbers
    rest: U64


def phrases_in(captions: Captions, phrases: Iterable[str]) -> Phrases:
    """All places of some phrases, overlapping ones too."""
    number = {phrase: at for at, phrase in enumerate(phrases)}
    places, sums = list[tuple[int, int, int, int, int]](), list[tuple[int, int]]()
    for caption, words in enumerate(captions.words):
        summed: list[int] = []
        for start in range(len(words)):
            for end in range(start + 1, min(start + LONGEST_PHRASE, len(words)) + 1):
                which = number.get(" ".join(words[start:end]))
                if which is not None:
                    summed = summed or sums_of(words)
                    places.append((caption, start, end - start, which, len(words) - (end - start)))
                    sums.append((summed[start], (summed[-1] - summed[end]) % _MODULUS))
    table = np.array(places, np.int64).reshape(-1, 5)
    before, after = np.array(sums, np.uint64).reshape(-1, 2).T
    place = (table[:, 1].astype(np.uint64) << np.uint64(32)) | table[:, 4].astype(np.uint64)
    rest = mixed((before + after * _INVERSE[table[:, 2]]) ^ mixed(place + np.uint64(1)))
    return Phrases(table[:, 0], table[:, 1], table[:, 2], table[:, 3], rest)


class Said:
    """Which lines of the vocabulary the captions of each photo name, or leave open."""

    def __init__(self, captions: Captions, phrases: Phrases, words: Vocabulary) -> None:
        """phrases: all places of what is listed in ``words.says``."""
        listed, sets = [*words.says.values()], [(line.kind, line.set_name) for line in words.lines]
        count = [len(numbers) for numbers in captions.of_photo]
        self._several, self._needed = [number > 1 for number in count], [min(number // SEVERAL, 1) for number in count]
        self._open = set[tuple[int, int]]()
        self._sets, naming = sets, set[tuple[int, int]]()
        for caption, which in zip(phrases.caption.tolist(), phrases.which.tolist(), strict=True):
            self._open.update((int(captions.photo[caption]), line) for line in listed[which])
            if which < len(words.named):
                naming.update((caption, line) for line in words.named[which])
        self._named, self._of_set, self._here = (Counter[tuple[int, object]]() for _ in range(3))
        for caption, line in naming:  # once for each caption that names the line
            photo = int(captions.photo[caption])
            self._named[photo, line] += 1
            self._of_set[photo, sets[line]] += 1
            self._here[caption, sets[line]] += 1
        self._disputed = {
            caption
            for caption, line in naming
            if words.lines[line].set_name in words.single
            and self._outvoted(int(captions.photo[caption]), caption, line, 0)
        }

    def open(self, photo: int, line: int) -> bool:
        """Whether some caption of a photo names a line, or has a word that leaves it open."""
        return (photo, line) in self._open

    def contested(self, photo: int, caption: int, line: int) -> bool:
        """Whether other captions of a photo deny a line, or any word of one of `Vocabulary.single` in its caption.

        They deny it where they name other lines of its set as often as all captions name it; and the line itself where
        `SEVERAL` captions or more do not name it twice.
        """
        return caption in self._disputed or self._outvoted(photo, caption, line, self._needed[photo])

    def _outvoted(self, photo: int, caption: int, line: int, needed: int) -> bool:
        """needed: how many other captions name the line, at least."""
        of_set, named = self._sets[line], self._named[photo, line]
        rivals = self._of_set[photo, of_set] - (self._here[caption, of_set] - 1)
        # Nothing contests a caption that is the only one.
        return self._several[photo] and (rivals >= 2 * named or named <= needed)


@dataclass(frozen=True, slots=True)
class Twins(Columns):
    """Pairs of captions: in each array a row of two a pair.

    caption, photo: of both sides. start: the first word that differs (one a pair). phrase: what differs, and line: what
    it stands for, by number in the vocabulary.
    """

    caption: Numbers
    photo: Numbers
    start: Numbers
    phrase: Numbers
    line: Numbers

    def __len__(self) -> int:
        return len(self.caption)


def twins(captions: Captions, words: Vocabulary, allowed: Bools, salt: np.uint64) -> Twins:
    """All pairs of captions of two photos that differ in one phrase, which is true of one photo alone.

    Args:
        captions: of which some may be repeated.
        words: the vocabulary.
        allowed: whether each phrase of it may be what differs.
        salt: decides which ones are compared where more than `WINDOW` + 1 captions are the same but for a phrase.
    """
    places = phrases_in(captions, words.says)
    statements = Said(captions, places, words)
    places = places.take(places.which < len(words.phrases))
    first = dict[tuple[int, tuple[str, ...]], int]()  # of a photo's captions of the same words
    for caption, place in enumerate(zip(captions.photo.tolist(), captions.words, strict=True)):
        first.setdefault(place, caption)
    once = np.zeros(len(captions.rows), np.bool_)
    once[[*first.values()]] = True
    length = np.array([len(tokens) for tokens in captions.words], np.int64)
    good = allowed[places.which] & (length[places.caption] - places.words >= FEWEST) & once[places.caption]
    parts = []
    for pairs in neighbours(captions, places.take(good), words, salt):
        rows = zip(pairs.photo.tolist(), pairs.caption.tolist(), pairs.line.tolist(), strict=True)
        kept = [
            not any(statements.open(photo[side], line[1 - side]) for side in (0, 1))
            and not any(map(statements.contested, photo, caption, line))
            for photo, caption, line in rows
        ]
        parts.append(pairs.take(np.array(kept, np.bool_)))
    return Twins(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Twins)))


def neighbours(captions: Captions, places: Phrases, words: Vocabulary, salt: np.uint64) -> Iterator[Twins]:
    """Pairs of places of two photos around which the captions are the same, and whose phrases exclude each other.

    Of more than `WINDOW` + 1 captions that are the same around a place each is compared with the next ones, in an
    order that depends on ``salt``: otherwise a phrase of thousands of photos would give millions of pairs.
    """
    drawn = captions.random(salt)[places.caption] >> np.uint64(32)
    order = np.lexsort((drawn, places.rest))
    places, drawn = places.take(order), drawn[order]
    photo = captions.photo[places.caption]
    for apart in range(1, WINDOW + 1):
        first = np.flatnonzero(places.rest[apart:] == places.rest[:-apart])
        line = words.twin[places.which[first], places.which[first + apart]]
        first = first[(line >= 0) & (photo[first] != photo[first + apart])]
        sides = np.stack([first, first + apart], axis=1)
        # Which side is first must not depend on how often a word is used.
        sides = np.where((drawn[first] < drawn[first + apart])[:, None], sides, sides[:, ::-1])
        phrase = places.which[sides]
        line = np.stack([words.twin[phrase[:, 0], phrase[:, 1]], words.twin[phrase[:, 1], phrase[:, 0]]], axis=1)
        yield Twins(places.caption[sides], photo[sides], places.start[sides[:, 0]], phrase, line.astype(np.int64))
