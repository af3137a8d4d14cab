"""What changed between a caption and its negative: the checks that hold for negatives of any origin."""

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")


def words(caption: str) -> list[str]:
    """The words of a caption in lower case, without punctuation."""
    return _WORD.findall(caption.lower())


def unchanged(caption: str, negative: str) -> bool:
    """Whether two captions differ in case, spaces and punctuation alone."""
    return words(caption) == words(negative)


def formatted(caption: str) -> str:
    """A caption as the released BiVLC has it (BiVLC, section 3.1, step 1): capitalized, with a full stop.

    All letters but the first become lower case, as in ``str.capitalize``: "TV" becomes "tv".
    """
    text = caption.strip().capitalize()
    return text if text.endswith(".") else f"{text}."


def spans(caption: str, negative: str) -> list[tuple[list[str], list[str]]]:
    """The words that differ, as (words of the caption, words of the negative), in order."""
    first, second = words(caption), words(negative)
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    return [(first[a:b], second[c:d]) for what, a, b, c, d in blocks if what != "equal"]


REPLACED, ADDED = 4, 6  # words that a replacement and an addition may have
COMPARED = 300  # words between the first change and the last; comparing more, of few different ones, takes minutes
_ARTICLES = ("a", "an", "the")


def problem(type_: str, caption: str, negative: str) -> str:
    """Why a negative is not one of its type (``replace``, ``swap`` or ``add``): a reason of ``changes``, or empty."""
    first, second = words(caption), words(negative)
    if first == second:
        return "unchanged"
    if type_ == "swap":
        bags = [Counter(word for word in side if word not in _ARTICLES) for side in (first, second)]
        return "" if bags[0] == bags[1] else "other-words"
    same = sum(takewhile(bool, map(eq, first, second)))
    same += sum(takewhile(bool, map(eq, first[same:][::-1], second[same:][::-1])))
    if max(len(first), len(second)) - same > COMPARED:
        return "changed-elsewhere"
    changed = [
        [[word for word in side if word not in _ARTICLES] for side in sides] for sides in spans(caption, negative)
    ]
    changed = [sides for sides in changed if any(sides)]
    if len(changed) != 1 or not changed[0][1] or bool(changed[0][0]) != (type_ == "replace"):
        return "changed-elsewhere"
    most = REPLACED if type_ == "replace" else ADDED
    return "too-much-changed" if max(map(len, changed[0])) > most else ""
