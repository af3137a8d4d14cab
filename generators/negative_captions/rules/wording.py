"""Putting other words into a caption: articles, plurals and capitals follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spacy.tokens import Token

_ARTICLE = re.compile(r"\b(an?)\b(\s+)(\w[\w-]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Characters from start to end of a caption become other words. An insertion has start = end."""

    start: int
    end: int
    text: str


def edited(caption: str, edits: Sequence[Edit]) -> str:
    """The caption with its edits, which must not overlap; "a" and "an" before words that are new are corrected."""
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [caption[at : edit.start], _with_capital(caption, edit)]
        at = edit.end
    text = "".join([*parts, caption[at:]])
    known = {(article.lower(), word) for article, _, word in _ARTICLE.findall(caption)}

    def corrected(found: re.Match[str]) -> str:
        article, space, word = found.groups()
        if (article.lower(), word) in known:
            return found.group()  # whoever wrote the caption may have had it wrong
        right = article_of(word)
        return f"{right.capitalize() if article[0].isupper() else right}{space}{word}"

    return _ARTICLE.sub(corrected, text)


def _with_capital(caption: str, edit: Edit) -> str:
    """A capital where the caption begins with one."""
    begins = not caption[: edit.start].strip()
    if begins and edit.text and caption[edit.start : edit.start + 1].isupper():
        return edit.text[0].upper() + edit.text[1:]
    return edit.text


def article_of(words: str) -> str:
    """``a`` or ``an``, by sound."""
    return str(_inflect().a(words)).split()[0]


def plural_of(noun: str) -> str:
    """The plural of a noun in the singular."""
    return str(_inflect().plural_noun(noun))


def replacing(token: Token, word: str) -> Edit:
    """A word in place of a token."""
    return Edit(token.idx, token.idx + len(token), word)


@cache
def _inflect() -> Any:
    import inflect

    return inflect.engine()
