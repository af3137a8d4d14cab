"""Annotators' phrases as sentences for people: capital, single spaces, one full stop, as in EqBen's Figure 16."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # Unicode's category Cc
SPACE_BEFORE_MARK = re.compile(r"\s+([,.;:!?])")
ENDS = ".!?"
STRAY = " ,;:-–—/\\|_"
QUOTES = "'\"`"
OPENED_BY = {")": "(", "]": "[", "}": "{"}


def as_sentence(*phrases: str) -> str:
    """The phrases joined into one sentence; empty where they hold no letter or digit.

    Only spacing, the first letter and the end are touched: wording stays the annotator's. Marks that end a phrase by
    accident (``pand]``, ``too long/``) go.
    """
    text = " ".join(CONTROL.sub(" ", " ".join(phrases)).split())
    text = SPACE_BEFORE_MARK.sub(r"\1", text)
    bare = _without_stray_end(text).lstrip(STRAY + ENDS)
    if not any(character.isalnum() for character in bare):
        return ""
    mark = "" if bare[-1] in ENDS else "."
    return bare[0].upper() + bare[1:] + mark


def _without_stray_end(text: str) -> str:
    while text:
        last = text[-1]
        unopened = last in OPENED_BY and text.count(last) > text.count(OPENED_BY[last])
        unpaired = last in QUOTES and text.count(last) % 2
        doubled = last in ENDS and text[-2:-1] in ENDS
        if not (last in STRAY or unopened or unpaired or doubled):
            break
        text = text[:-1]
    return text
