"""What changed between a caption and its negative: the checks that hold for negatives of any origin."""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

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


def nothing_kept(caption: str, negative: str) -> bool:
    """Whether a negative has none of its caption's words: then it is another caption. A caption of one word is not."""
    first = words(caption)
    return len(first) > 1 and not {*first} & {*words(negative)}


def same_words(caption: str, negative: str) -> bool:
    """Whether a negative has the words of its caption, each as often, articles aside: so has every swap."""
    return _bag(caption) == _bag(negative)


def _bag(caption: str) -> Counter[str]:
    return Counter(word for word in words(caption) if word not in ("a", "an", "the"))


REPLACED, ADDED = 4, 6  # words that a replacement and an addition may have
COMPARED = 300  # words between the first change and the last; comparing more, of few different ones, takes minutes
_ARTICLES = ("a", "an", "the")
_STEM = 4  # letters
_DENYING = frozenset(
    ("no", "not", "without", "nobody", "nothing", "none", "nowhere", "never", "neither", "nor", "cannot")
)
#: What goes with a word that denies, beside the caption's own words.
_AROUND = frozenset(
    (
        *("a", "an", "the", "any", "is", "are", "was", "were", "be", "being", "been", "do", "does", "did", "has"),
        *("have", "having", "there", "it", "its", "that", "which", "who", "but", "and", "or", "of", "with", "in", "on"),
        *("at", "one", "sight", "visible", "anywhere"),
    )
)


def problem(type_: str, caption: str, negative: str) -> str:
    """Why a negative is not one of its type (`kinds.NegativeKind.type`): a reason of ``changes``, or empty."""
    if unchanged(caption, negative):
        return "unchanged"
    if type_ == "negate":
        return _problem_of_negation(words(caption), words(negative))
    if type_ == "swap":
        return "" if same_words(caption, negative) else "other-words"
    if _span_of_all(words(caption), words(negative)) > COMPARED:
        return "changed-elsewhere"
    changed = [
        tuple([word for word in side if word not in _ARTICLES] for side in one) for one in spans(caption, negative)
    ]
    changed = [one for one in changed if any(one)]
    if len(changed) != 1 or not changed[0][1] or bool(changed[0][0]) != (type_ == "replace"):
        return "changed-elsewhere"
    most = REPLACED if type_ == "replace" else ADDED
    return "too-much-changed" if max(map(len, changed[0])) > most else ""


def _denies(word: str) -> bool:
    return word in _DENYING or word.replace("’", "'").endswith("n't")


def _problem_of_negation(first: Sequence[str], second: Sequence[str]) -> str:
    """What is denied must be said by the caption: "no cat" is true of a photo of a dog."""
    if sum(map(_denies, second)) <= sum(map(_denies, first)):
        return "not-negated"
    # "sleeps", "sleeping" and "sleep" are one: what begins with the letters of one of the caption's words.
    known = {word[:_STEM] for word in first}
    new = [word for word in second if word[:_STEM] not in known and not _denies(word) and word not in _AROUND]
    return "new-words" if new else ""


def _span_of_all(first: Sequence[str], second: Sequence[str]) -> int:
    """Words of the longer caption from the first change to the last."""
    shorter = min(len(first), len(second))
    same = next((n for n in range(shorter) if first[n] != second[n]), shorter)
    rest = shorter - same
    same += next((n for n in range(rest) if first[-1 - n] != second[-1 - n]), rest)
    return max(len(first), len(second)) - same
