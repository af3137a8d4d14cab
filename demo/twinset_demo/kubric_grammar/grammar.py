"""Captions of the grammar as scenes: which objects, how many, in which colours and sizes, how they stand."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from twinset.models.image_engine import Rejection
from twinset_demo.kubric_grammar.vocabulary import (
    COLOURS,
    NUMBERS,
    PLURAL,
    RELATIONS,
    SINGULAR,
    SIZES,
    SYNONYMS,
    VERBS,
    Noun,
    Relation,
    Size,
)

MOST_PHRASES, MOST_OBJECTS = 3, 8
MOST_CHARACTERS = 300  # of a caption: the longest of the grammar is shorter
WORD = re.compile(r"[^\s,]+|,")
T = TypeVar("T")


class NotDrawable(Exception):
    """A caption that cannot be read, or says what cannot be shown. rejection: why."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.rejection = Rejection(reason, detail)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Objects that the caption names together. colour: as painted. said: whether the caption gives that colour."""

    noun: Noun
    count: int
    colour: str
    said: bool
    size: Size = ""

    @property
    def words(self) -> str:
        """For messages, such as ``small red mug``."""
        return " ".join(word for word in (self.size, self.colour if self.said else "", self.noun.names[0]) if word)


@dataclass(frozen=True, slots=True)
class Scene:
    """What a caption says. relations: of each phrase to the one after it."""

    phrases: tuple[Phrase, ...]
    relations: tuple[Relation, ...] = ()


def read(caption: str) -> Scene:
    """The scene that a caption describes.

    Raises:
        NotDrawable: ``not-in-grammar``, naming the word, or ``not-drawable``, naming the objects.
    """
    if len(caption) > MOST_CHARACTERS:
        raise NotDrawable("not-in-grammar", f"it has {len(caption):,} characters, and may have {MOST_CHARACTERS}")
    reader = _Reader(WORD.findall(caption.strip().rstrip(".").lower()))
    scene = _with_colours(reader.scene())
    _check(scene)
    return scene


class _Reader:
    """Words of a caption, read from the left."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = 0

    def scene(self) -> Scene:
        if self._words[:1] == ["there"] and self._words[1:2] in (["is"], ["are"]):
            self._at = 2
        phrases, relations = [self._phrase()], []
        while self._at < len(self._words):
            said = self._relation()
            phrases.append(self._phrase())
            # "with a drum nearby"
            near = said == "and" and self._take(("nearby",))
            relations.append("beside" if near else said)
        return Scene(tuple(phrases), tuple(relations))

    def _phrase(self) -> Phrase:
        word = self._word("a number or an article")
        if word not in NUMBERS:
            raise NotDrawable("not-in-grammar", f"{word!r} stands where a number or an article is read")
        count = NUMBERS[word]
        self._at += 1
        size: Size = SIZES.get(self._peek(), "")
        self._at += bool(size)
        colour = SYNONYMS.get(self._peek(), self._peek())
        said = colour in COLOURS
        self._at += said
        noun = self._longest(SINGULAR if count == 1 else PLURAL)
        if noun is None:
            raise NotDrawable("not-in-grammar", f"{self._word('an object')!r} is no object, or not in this form")
        return Phrase(noun, count, colour if said else "", said, size)

    def _relation(self) -> Relation:
        if self._take((",",)):
            self._take(("and",))
            return "and"
        while self._peek() in VERBS:
            self._at += 1
        relation = self._longest(RELATIONS)
        if relation is None:
            raise NotDrawable("not-in-grammar", f"{self._word('a relation')!r} stands where a relation is read")
        return relation

    def _longest(self, known: Mapping[str, T]) -> T | None:
        """What the most words from here on name."""
        for end in range(min(len(self._words), self._at + 5), self._at, -1):
            name = " ".join(self._words[self._at : end])
            if name in known:
                self._at = end
                return known[name]
        return None

    def _take(self, words: tuple[str, ...]) -> bool:
        there = self._peek() in words
        self._at += there
        return there

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _word(self, expected: str) -> str:
        if self._at == len(self._words):
            raise NotDrawable("not-in-grammar", f"it ends where {expected} is read")
        return self._words[self._at]


def _with_colours(scene: Scene) -> Scene:
    """Objects without a colour get their own, or another one where that of an object of the same name is said."""
    phrases: list[Phrase] = []
    for one in scene.phrases:
        taken = {other.colour for other in scene.phrases if other.noun is one.noun and other.said}
        own = [one.noun.colour, *(name for name in COLOURS if not one.noun.colours)]
        colour = one.colour or next((name for name in own if name not in taken), one.noun.colour)
        phrases.append(replace(one, colour=colour))
    return replace(scene, phrases=tuple(phrases))


def _check(scene: Scene) -> None:
    """Raise `NotDrawable` for what was read and cannot be shown."""
    phrases, relations = scene.phrases, scene.relations
    if len(phrases) > MOST_PHRASES or sum(one.count for one in phrases) > MOST_OBJECTS:
        raise NotDrawable("not-drawable", f"it names more than {MOST_PHRASES} kinds or {MOST_OBJECTS} objects")
    for one in phrases:
        if one.said and one.noun.colours and one.colour not in one.noun.colours:
            raise NotDrawable("not-drawable", f"there is no {one.words}, only {' or '.join(one.noun.colours)} ones")
    if len(relations) == 2 and "and" in relations and relations != ("and", "and"):
        raise NotDrawable("not-in-grammar", "what stands beside 'and' can be read in two ways")
    for number, relation in enumerate(relations):
        if relation not in ("on", "under"):
            continue
        first, second = phrases[number : number + 2]
        if first.count > 1 or second.count > 1:
            raise NotDrawable("not-drawable", "only one object lies on another one")
        if relation == "under" and sheltered(first, second):
            continue
        upper, lower = (number, number + 1) if relation == "on" else (number + 1, number)
        above, below = phrases[upper], phrases[lower]
        if not above.noun.lies or not below.noun.top:
            raise NotDrawable("not-drawable", f"a {above.words} does not lie on a {below.words}")
        if above.noun.extent * SCALES[above.size] > 1.5 * below.noun.extent * SCALES[below.size]:
            raise NotDrawable("not-drawable", f"a {above.words} is too large to lie on a {below.words}")
        if len(relations) == 2 and upper == 1:
            raise NotDrawable("not-drawable", f"a {above.words} that lies on something stands beside nothing else")


MOST_SHELTERED = 0.68  # of the length of what has legs

#: How much longer a large object is than one whose size is not said; small ones likewise.
SCALES = {"small": 0.74, "": 1.0, "large": 1.34}


def sheltered(inner: Phrase, over: Phrase) -> bool:
    """Whether an object fits below another one, between its legs."""
    length, space = (one.noun.extent * SCALES[one.size] for one in (inner, over))
    return length * inner.noun.tall <= space * over.noun.shelter and length <= MOST_SHELTERED * space
