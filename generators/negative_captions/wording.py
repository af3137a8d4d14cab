"""Other words put into a caption: articles and capitals follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

_ARTICLE = re.compile(r"\b(an?)\b(\s+)(\w[\w-]*)", re.IGNORECASE)


class Edit(NamedTuple):
    """Characters from start to end of a caption become other words. An insertion has start = end."""

    start: int
    end: int
    text: str


def edited(caption: str, edits: Sequence[Edit]) -> str:
    """The caption with its edits, which must not overlap; "a" and "an" before new words are corrected."""
    parts, at = [], 0
    for start, end, words in sorted(edits):
        capital = not caption[:start].strip() and caption[start : start + 1].isupper()  # the caption's own
        parts += [caption[at:start], words[:1].upper() + words[1:] if capital else words]
        at = end
    text = "".join([*parts, caption[at:]])
    known = {(article.lower(), word) for article, _, word in _ARTICLE.findall(caption)}

    def corrected(match: re.Match[str]) -> str:
        article, space, word = match.groups()
        if (article.lower(), word) in known:
            return match.group()  # the writer of the caption may have had it wrong
        right = article_of(word)
        return f"{right.capitalize() if article[0].isupper() else right}{space}{word}"

    return _ARTICLE.sub(corrected, text)


@cache
def article_of(words: str) -> str:
    """``a`` or ``an``, by sound."""
    return str(_inflect().a(words)).split()[0]


def plural_of(noun: str) -> str:
    """The plural of a noun in the singular."""
    return str(_inflect().plural_noun(noun))


def participle_of(verb: str) -> str:
    """The -ing form of a verb."""
    return "lying" if verb == "lie" else str(_inflect().present_participle(third_person_of(verb)))


def third_person_of(verb: str) -> str:
    """ "walks" of "walk"."""
    if verb.endswith("y") and verb[-2] not in "aeou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "o")) else f"{verb}s"


@cache
def _inflect() -> Any:
    import inflect

    return inflect.engine()
