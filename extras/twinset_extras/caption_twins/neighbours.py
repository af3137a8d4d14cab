"""Captions that are the same but for one word or phrase of the lists, and what all captions of each photo say."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from twinset.generators.triplets.draws import Bools, Codes, distinct
from twinset_extras.caption_twins.columns import Captions, Columns, Numbers, Spans, phrase_hashes
from twinset_extras.caption_twins.vocabulary import Vocabulary

SEVERAL = 3  # captions of a photo, of which two must name what is believed
FEWEST = 2  # words beside the one that differs
WINDOW = 8  # captions that one is compared with, where more are the same but for one word
LONGEST_PHRASE = 3
BLOCK = 1 << 18  # captions whose words are looked up together


@dataclass(frozen=True, slots=True)
class Phrases(Spans):
    """Where captions have phrases. which: number of each in the list that was searched."""

    which: Codes


def phrases_in(captions: Captions, phrases: tuple[str, ...]) -> Phrases:
    """All places of some phrases, overlapping ones too."""
    lengths = np.array([len(phrase.split()) for phrase in phrases])
    hashes = phrase_hashes(phrases)
    found: list[Phrases] = []
    for words in range(1, LONGEST_PHRASE + 1):
        of_length = np.flatnonzero(lengths == words)
        of_length = of_length[np.argsort(hashes[of_length])]
        ordered = hashes[of_length]
        begin = np.zeros(1 << 16, dtype=np.bool_)  # the first 16 bits tell most words apart from all phrases
        begin[ordered >> np.uint64(48)] = True
        for first in range(0, max(len(captions), 1), BLOCK):
            spans, said = captions.spans(words, first, first + BLOCK)
            maybe = np.flatnonzero(begin[said >> np.uint64(48)])
            place = np.minimum(np.searchsorted(ordered, said[maybe]), len(ordered) - 1)
            here = ordered[place] == said[maybe]
            some = spans.take(maybe[here])
            found.append(Phrases(some.caption, some.start, some.words, of_length[place[here]].astype(np.int32)))
    return Phrases.joined(found)


class Said:
    """Which lines of the vocabulary the captions of each photo name, or leave open."""

    def __init__(self, captions: Captions, found: Phrases, words: Vocabulary) -> None:
        """found: all places of what is listed in ``words.says``."""
        self._lines, listed = len(words.lines), tuple(words.says)
        photo = captions.photo[found.caption].astype(np.int64) * self._lines
        # A bit for each line: a row of 70 bytes a photo, in which a bit is found at once.
        self._open = np.zeros((captions.photos, self._lines // 8 + 1), dtype=np.uint8)
        for first in range(0, len(photo), BLOCK):
            some = slice(first, first + BLOCK)
            key = _keys(photo[some], found.which[some], list(words.says.values()))
            place, line = np.divmod(key, self._lines)
            np.bitwise_or.at(self._open, (place, line >> 3), (1 << (line & 7)).astype(np.uint8))
        names = [*words.named, *[()] * (len(listed) - len(words.named))]
        # Once for each caption that names the line.
        caption = found.caption.astype(np.int64) * self._lines
        once = distinct(_keys(caption, found.which, names))
        photo = captions.photo[once // self._lines].astype(np.int64) * self._lines
        self._named = np.sort(photo + once % self._lines)
        count = np.bincount(captions.photo, minlength=captions.photos)
        self._several, self._needed = count > 1, np.minimum(count // SEVERAL, 1)
        sets: dict[tuple[str, str], int] = {}
        self._set = np.array([sets.setdefault((one.kind, one.set_name), len(sets)) for one in words.lines])
        of_set = self._set[once % self._lines]
        self._of_set = np.sort(photo + of_set)
        self._here = np.sort(once // self._lines * self._lines + of_set)
        self._disputed = np.zeros(len(captions), dtype=np.bool_)
        single = np.array([one.set_name in words.single for one in words.lines])[once % self._lines]
        once = once[single & self._several[photo // self._lines]]
        by, line = (once // self._lines).astype(np.int32), (once % self._lines).astype(np.int32)
        self._disputed[by[self._outvoted(captions.photo[by], by, line, 0)]] = True

    def open(self, photo: Codes, line: Codes) -> Bools:
        """Whether some caption of each photo names a line, or has a word that leaves it open."""
        return np.asarray(self._open[photo, line >> 3] >> (line & 7).astype(np.uint8) & 1 == 1)

    def contested(self, photo: Codes, caption: Codes, line: Codes) -> Bools:
        """Whether other captions of each photo deny a line, or any word of one of `Vocabulary.single` in its caption.

        They deny it where they name other lines of its set as often as all captions name it; and the line itself where
        `SEVERAL` captions or more do not name it twice.
        """
        return np.asarray(self._disputed[caption] | self._outvoted(photo, caption, line, self._needed[photo]))

    def _outvoted(self, photo: Codes, caption: Codes, line: Codes, needed: Numbers | int) -> Bools:
        """needed: how many other captions name the line, at least."""
        base, of_set = photo.astype(np.int64) * self._lines, self._set[line]
        here = _times(self._here, caption.astype(np.int64) * self._lines + of_set) - 1
        named = _times(self._named, base + line)
        wrong = (_times(self._of_set, base + of_set) - here >= 2 * named) | (named <= needed)
        return np.asarray(wrong & self._several[photo])  # nothing contests a caption that is the only one


def _times(ordered: Numbers, values: Numbers) -> Numbers:
    """How often each value is among sorted ones."""
    return np.asarray(np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values))


def _keys(base: Numbers, which: Codes, lines: list[tuple[int, ...]]) -> Numbers:
    """Base + line, for each line that each phrase stands for."""
    count = np.array([len(one) for one in lines], dtype=np.int64)
    flat = np.array([line for one in lines for line in one], dtype=np.int64)
    first = np.cumsum(count) - count
    many = count[which]
    at = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    return np.asarray(np.repeat(base, many) + flat[np.repeat(first[which], many) + at])


@dataclass(frozen=True, slots=True)
class Twins(Columns):
    """Pairs of captions: in each array a row of two a pair.

    caption, photo: of both sides. words: how many words differ, from word ``start`` on (one a pair). phrase: what they
    are, and line: what they stand for, by number in the vocabulary.
    """

    caption: Codes
    photo: Codes
    start: Codes
    words: Codes
    phrase: Codes
    line: Codes

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
    found = phrases_in(captions, tuple(words.says))
    said = Said(captions, found, words)
    found = found.take(np.flatnonzero(found.which < len(words.phrases)))
    left = captions.length[found.caption] - found.words
    good = allowed[found.which] & (left >= FEWEST) & ~captions.repeated()[found.caption]
    found = found.take(np.flatnonzero(good))
    parts = []
    for pairs in neighbours(captions, found, words, salt):
        pairs = pairs.take(np.flatnonzero(~said.open(pairs.photo, pairs.line[:, ::-1]).any(axis=1)))
        wrong = said.contested(pairs.photo, pairs.caption, pairs.line)
        parts.append(pairs.take(np.flatnonzero(~wrong.any(axis=1))))
    return Twins.joined(parts)


def neighbours(captions: Captions, found: Phrases, words: Vocabulary, salt: np.uint64) -> Iterator[Twins]:
    """Pairs of places of two photos around which the captions are the same, and whose phrases exclude each other.

    Of more than `WINDOW` + 1 captions that are the same around a place each is compared with the next ones, in an
    order that depends on ``salt``: otherwise a phrase of thousands of photos would give millions of pairs.
    """
    rest = captions.without(found)
    place = np.argsort(rest, kind="stable")
    same = rest[place][1:] == rest[place][:-1]
    again, some = np.zeros((2, len(place)), dtype=np.bool_)
    again[1:] = some[1:] = same
    some[:-1] |= same
    run = np.cumsum(~again[some])  # places with the same rest have the same number
    found = found.take(place[some])
    drawn = captions.random(salt)[found.caption] >> np.uint64(32)
    order = np.argsort(run.astype(np.uint64) << np.uint64(32) | drawn, kind="stable")
    found, run, drawn = found.take(order), run[order], drawn[order]
    photo = captions.photo[found.caption]
    for apart in range(1, WINDOW + 1):
        one = np.flatnonzero(run[apart:] == run[:-apart])
        line = words.twin[found.which[one], found.which[one + apart]]
        one = one[(line >= 0) & (photo[one] != photo[one + apart])]
        both = np.stack([one, one + apart], axis=1)
        # Which side is first must not depend on how often a word is used.
        both = np.where((drawn[one] < drawn[one + apart])[:, None], both, both[:, ::-1])
        phrase = found.which[both]
        yield Twins(
            caption=found.caption[both],
            photo=photo[both],
            start=found.start[both[:, 0]],
            words=found.words[both],
            phrase=phrase,
            line=np.stack([words.twin[phrase[:, 0], phrase[:, 1]], words.twin[phrase[:, 1], phrase[:, 0]]], axis=1),
        )
