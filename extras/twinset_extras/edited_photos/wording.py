"""What a negative caption wants changed: which noun's place, what must be seen there, and in which words to ask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from twinset.generators.negative_captions.changes import words
from twinset.generators.negative_captions.exchange.vocabulary import Vocabulary

_ARTICLES = ("a", "an", "the")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DENIALS = ("no", "without")
MOST = 4  # words that may change
BETWEEN = 2  # words between an adjective and its noun
#: Where a phrase of a noun ends, before and behind.
_STOPS = frozenset(
    (
        *("and", "or", "with", "in", "on", "of", "at", "to", "by", "for", "from", "near", "next"),
        *(
            "under",
            "over",
            "behind",
            "beside",
            "inside",
            "into",
            "onto",
            "through",
            "across",
            "around",
            "between",
            "above",
            "below",
        ),
        *("while", "is", "are", "was", "were", "has", "have", "that", "which", "who", "as", "up", "down"),
        *("off", "out", "his", "her", "their", "its", "there", "being", "this", "these", "those", "sits", "stands"),
        *("lies", "rests"),
    )
)
_IRREGULAR = dict(man="men", woman="women", person="people", child="children", mouse="mice", knife="knives")
_BOTH = ("sheep", "skis", "scissors")
PERSON = "person"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A change of one place.

    change: ``object``, ``attribute``, ``count`` or ``removal``. noun: whose place it is, as the caption has it.
    categories: that it may be. count: how many of them the picture must show; 0 for several, whatever their number.
    removed: how many of them go; 0 where none does. phrase, instruction: as `image_editor.Edit` has them.
    """

    change: str
    noun: str
    categories: tuple[str, ...]
    count: int
    removed: int
    phrase: str
    instruction: str


class Nouns:
    """Nouns by their words, each with the categories that it may name, and whether it is a plural."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        """names: of each category, in the singular."""
        self._known: dict[tuple[str, ...], tuple[set[str], bool]] = {}
        for category, all_names in names.items():
            for name in all_names:
                for form, plural in ((name, False), (plural_of(name), True)):
                    self._known.setdefault(tuple(form.split()), (set(), plural))[0].add(category)

    def at(self, text: Sequence[str], start: int) -> tuple[int, tuple[str, ...], bool] | None:
        """End, categories and number of the longest noun that begins there, unless another word makes it a compound."""
        for length in (3, 2, 1):
            end = start + length
            if end <= len(text) and (noun := self._known.get(tuple(text[start:end]))):
                whole = noun[1] or end == len(text) or text[end] in _STOPS or text[end].endswith(("ing", "ed"))
                before = start > 0 and tuple(text[start - 1 : end]) in self._known
                return (end, tuple(sorted(noun[0])), noun[1]) if whole and not before else None
        return None

    def after(self, text: Sequence[str], start: int) -> tuple[int, int, tuple[str, ...], bool] | None:
        """Start, end, categories and number of the first noun there, behind at most `BETWEEN` other words."""
        for at in range(start, min(start + BETWEEN + 1, len(text))):
            if noun := self.at(text, at):
                return at, *noun
            if text[at] in _STOPS:
                return None
        return None


def plural_of(name: str) -> str:
    """The plural of a noun by rule; of several words, that of the last."""
    before, _, last = name.rpartition(" ")
    if last in _BOTH:
        return name
    ending = re.sub(r"(?<=[^aeiou])y$", "ie", last) + ("es" if re.search(r"(s|x|ch|sh)$", last) else "s")
    return f"{before} {_IRREGULAR.get(last, ending)}".strip()


def names_of(categories: Iterable[str], vocabulary: Vocabulary) -> dict[str, set[str]]:
    """Names of categories: their own, the synonyms of the vocabulary of exchanged words, and those of people.

    The last word of a category names it too ("dining table"), where the vocabulary has it and no category is called so.
    """
    all_, named = {category for category in categories if category.strip()}, dict[str, set[str]]()
    for category in sorted(all_):
        head = category.split()[-1]
        own = {category} | ({head} if head not in all_ and head in vocabulary.nouns else set())
        named[category] = own.union(*(vocabulary.synonyms(name) for name in own)) - (all_ - {category})
        if category == PERSON:
            named[category] |= vocabulary.people - {"people", "couple", "family"}
    return named


def wanted(caption: str, negative: str, type_: str, nouns: Nouns) -> Wanted | str:
    """The change of a negative caption, or the reason why no place of a picture stands for it."""
    if type_ not in ("", "replace"):
        return "other-kind"
    first, second = ([word for word in words(text) if word not in _ARTICLES] for text in (caption, negative))
    if any(word in second and word not in first for word in _DENIALS):
        return _denied(first, second, nouns)
    start = next((n for n, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return "other-kind"
    rest = min(len(first), len(second)) - start
    same = next((n for n in range(rest) if first[-1 - n] != second[-1 - n]), rest)
    end, new_end = len(first) - same, len(second) - same
    old, new = first[start:end], second[start:new_end]
    if not old or not new:
        return "other-kind"
    if max(len(old), len(new)) > MOST:
        return "too-much-changed"
    if old[0] in _NUMBERS and new[0] in _NUMBERS:
        return _counted(first, second, start, nouns)
    for at in range(start, end):
        if (match := nouns.at(first, at)) and match[0] == end:
            noun = " ".join(first[at:end])
            phrase = _phrase(second, start, new_end, match[2])
            return Wanted(
                "object", noun, match[1], _count(first, at, match[2]), 0, phrase, f"replace the {noun} with {phrase}"
            )
    if (after := nouns.after(first, end)) is None:
        return "unknown-noun"
    at, stop, categories, plural = after
    noun = " ".join(first[at:stop])
    phrase = _phrase(second, start, stop - end + new_end, plural)
    say = f"make the {noun} {' '.join(new)}"
    return Wanted("attribute", noun, categories, _count(first, at, plural), 0, phrase, say)


def _counted(first: Sequence[str], second: Sequence[str], start: int, nouns: Nouns) -> Wanted | str:
    before, after = _NUMBERS.index(first[start]), _NUMBERS.index(second[start])
    counted, counted_after = nouns.after(first, start + 1), nouns.after(second, start + 1)
    if counted is None or counted_after is None or counted[2] != counted_after[2]:
        return "unknown-noun"
    if after >= before:
        return "count-raised"
    noun = " ".join(first[counted[0] : counted[1]])
    say = f"remove {_NUMBERS[before - after]} of the {noun}" if after else f"remove the {noun}"
    return Wanted("count", noun, counted[2], before, before - after, "", say)


def _denied(first: Sequence[str], second: Sequence[str], nouns: Nouns) -> Wanted | str:
    """What a negative denies and its caption names, once."""
    for at, word in enumerate(second):
        if word in _DENIALS and (denied := nouns.after(second, at + 1)):
            named = [(n, *match) for n in range(len(first)) if (match := nouns.at(first, n)) and match[1] == denied[2]]
            if len(named) != 1:
                return "unknown-noun"
            start, end, categories, plural = named[0]
            noun, count = " ".join(first[start:end]), _count(first, start, plural)
            return Wanted("removal", noun, categories, count, count or -1, "", f"remove the {noun}")
    return "unknown-noun"


def _count(text: Sequence[str], noun: int, plural: bool) -> int:
    """How many a noun says there are."""
    for word in text[max(noun - BETWEEN - 1, 0) : noun]:
        if word in _NUMBERS[1:]:
            return _NUMBERS.index(word)
    return 0 if plural else 1


def _phrase(text: Sequence[str], start: int, end: int, plural: bool) -> str:
    """The words from start to end with those before them that belong to their noun, and an article.

    plural: whether what they stand in for is more than one.
    """
    while start and end - start < MOST and text[start - 1] not in _STOPS and not text[start - 1].endswith("ing"):
        start -= 1
    phrase = " ".join(text[start:end])
    return phrase if plural or text[start] in _NUMBERS else f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"
