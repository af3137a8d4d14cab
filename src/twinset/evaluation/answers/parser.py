"""Which of two captions a free answer chooses: "(1)", "Caption 2.", "Neither is right, but if I must, (2) is closer".

The prompt is SugarCrepe's: "Which caption best describes the image? (1) … (2) … Output (1) or (2).". Rules, not a
model: each can be read, and what they do not read is listed rather than guessed.

1. Thoughts between ``<think>`` and ``</think>`` are not the answer. Mentions of captions become marks
   (`marked`): numbers, ordinals, and the caption's own text.
2. Verdicts are searched for: one caption is chosen ("the answer is (1)", "(1) is closer", a line that begins with
   "(1)"), neither fits, both fit, a number with the text of the other caption. **The last verdict counts**: models say
   that neither is exact and then choose, or choose and then take it back.
3. Without a verdict, the only caption that is mentioned and not rejected ("not (1)", "rather than (2)", "(2) is wrong")
   is chosen.
4. Otherwise there is no choice, for one of `REASONS`. Rejecting one caption chooses nothing: the other one could be
   wrong, too.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

#: Mentions of caption 1 and 2; of both in one phrase, such as "(1) or (2)"; of one's number with the other's text.
ONE, TWO, PAIR, CLASH = "\ue001", "\ue002", "\ue003", "\ue004"
MARK = f"[{ONE}{TWO}]"
_QUOTED = {1: "\ue011", 2: "\ue012"}  # the text of a caption
_EITHER_QUOTED = f"[{''.join(_QUOTED.values())}]"

_ENDING = " .,;:!?'\n"  # around a sentence
LEAST_WORDS = 3  # of a caption, to be found inside an answer: "a dog" is in many sentences

_NOUN = "(?:caption|option|choice|description|statement|sentence|candidate|alternative|number|answer|text)"
_CUE = (
    "(?:answer|choice|output|response|choose|select|pick|say|caption|option|fits|(?:fits|matches|describes) the image)"
)
_ENDS = r"(?=\s*(?:$|[.,;:!?)\]}<\n]|because\b|since\b|as\b))(?![.,]\d)"
_VERB = "(?:is|was|would|seems|appears|describes|matches|fits|better|best|more)"
#: How captions are mentioned, most specific first. ``number``: the number or its word; ``kept``: what goes before.
_MENTIONS = tuple(
    re.compile(pattern.replace("NUMBER", "(?P<number>[12])"), re.MULTILINE)
    for pattern in (
        rf"(?P<kept>)(?:\b{_NOUN} ?)?[(\[{{] ?(?:(?:caption|option) )?NUMBER ?[)\]}}]",
        r"(?P<kept>)(?<![\w.])NUMBER\)",
        rf"(?P<kept>)\b{_NOUN} ?(?:number|no\.?)? ?NUMBER\b(?![.,]?\d)",
        r"(?P<kept>)\b(?:caption|option) (?:number )?(?P<number>one|two)\b",
        rf"(?P<kept>\b{_CUE}[ \n]?(?:(?:is|would be|number|[:=>\-])[ \n]?){{0,3}})NUMBER{_ENDS}",
        r"(?P<kept>\bneither )NUMBER(?= nor)",
        r"(?P<kept>\bnor )NUMBER\b(?![.,]?\d)",
        rf"(?P<kept>)\b(?:the )?(?P<number>first|second|1st|2nd) (?:{_NOUN}|one)\b",
        rf"(?P<kept>)\bthe (?P<number>former|latter|first|second)(?= ?(?:[.,;:!?\n]|$|{_VERB}\b))",
        r"(?P<kept>^)NUMBER ?(?:[.:\-](?= |$)|(?=(?:,|because|since)\b))",
    )
)
_NUMBER = {"1": 1, "one": 1, "first": 1, "1st": 1, "former": 1, "2": 2, "two": 2, "second": 2, "2nd": 2, "latter": 2}
_ALONE = re.compile(r"\W*(?:the )?(1|2|one|two|first|second|1st|2nd)\W*")

_LIKE_SPACE = re.compile(r"[^\S\n]+")
_AROUND_LINES = re.compile(r" ?\n[ \n]*")
#: A full stop of a quotation after which the sentence goes on.
_STOP_WITHIN = r"(?:\.(?= (?:nor|and|or|is|are|was|would|does|seems|describes|matches|fits)\b))?"
#: Quotation marks and the marks of Markdown and LaTeX, which only decorate.
_DECORATION = dict.fromkeys(map(ord, '"“”„«»*_`#\\$'), None) | {ord("’"): "'", ord("‘"): "'"}
_LISTED = re.compile(
    f"{ONE}[ \n:.]*{_QUOTED[1]}[ \n.,;]*(?:and|or)?[ \n]*{TWO}[ \n:.]*{_QUOTED[2]}"
    f"|{TWO}[ \n:.]*{_QUOTED[2]}[ \n.,;]*(?:and|or)?[ \n]*{ONE}[ \n:.]*{_QUOTED[1]}"
)
_SAME = re.compile(f"({ONE})[ \n:.,\\-–]*{_QUOTED[1]}|({TWO})[ \n:.,\\-–]*{_QUOTED[2]}")
_OTHER = re.compile(f"{ONE}[ :]*{_QUOTED[2]}|{TWO}[ :]*{_QUOTED[1]}")
_TOGETHER = re.compile(rf"{MARK}[,)]? ?(?:and|or|nor|/) ?(?:\w+ ){{0,2}}\(?{MARK}")


def plain(text: str) -> str:
    """Text folded for comparison: compatible characters and capitals alike, no decoration, single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_DECORATION)
    kept = "".join(one if one == "\n" or unicodedata.category(one)[0] != "C" else " " for one in folded)
    return _AROUND_LINES.sub("\n", _LIKE_SPACE.sub(" ", kept)).strip()


def marked(answer: str, captions: tuple[str, str] | None) -> str:
    """An answer, folded as by `plain`, with mentions replaced by marks.

    "The first caption", "(1)", "Option 1" and a quotation of caption 1 all become `ONE`. Marks are characters for
    private use, which are removed from the answer first: an answer cannot forge them.
    A list of both captions, as in the question, is dropped. Two mentions joined by "and", "or" or "nor" become `PAIR`.

    Args:
        captions: as numbered in the question; without them, quotations of their text are not found.
    """
    text = plain(answer)
    if alone := _ALONE.fullmatch(text):
        return _mark(alone[1])
    if captions is not None:
        text = _quotations_marked(text, *(plain(one).strip(_ENDING) for one in captions))
    for pattern in _MENTIONS:
        text = pattern.sub(lambda found: found["kept"] + _mark(found["number"]), text)
    text = _LISTED.sub(" ", text)
    text = _SAME.sub(lambda found: found[1] or found[2], text)
    text = _OTHER.sub(CLASH, text)
    text = re.sub(_EITHER_QUOTED, lambda found: ONE if found[0] == _QUOTED[1] else TWO, text)
    return _TOGETHER.sub(PAIR, text)


def _mark(number: str) -> str:
    return ONE if _NUMBER[number] == 1 else TWO


def _quotations_marked(text: str, first: str, second: str) -> str:
    """Quotations of a caption as marks; of the longer one first, since it can hold the other."""
    if first == second:
        return text
    for number, caption in sorted(((1, first), (2, second)), key=lambda one: -len(one[1])):
        if caption and text.strip(_ENDING) == caption:
            return _QUOTED[number]
        if len(caption.split()) >= LEAST_WORDS and caption in text:
            text = re.sub(rf"(?<!\w){re.escape(caption)}(?!\w){_STOP_WITHIN}", _QUOTED[number], text)
    return text


Choice = Literal[1, 2]

LONGEST = 200_000  # characters: far more than a model writes about two captions

#: Why an answer has no choice, with the meaning for people.
REASONS = {
    "empty": "there is no text",
    "too long": f"there are more than {LONGEST:,} characters",
    "unfinished": "the answer ends inside the model's thoughts",
    "neither": "the answer says that neither caption fits",
    "both": "the answer names both captions and chooses neither",
    "contradiction": "the answer gives the number of one caption and the text of the other",
    "refusal": "the model declines to answer",
    "no choice": "the answer mentions no caption, or only rejects one",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says. choice: the caption's number in the question. reason: why None; "" with a choice.

    second: of a pairing, the caption's number of the second image.
    """

    choice: Choice | None
    reason: str = ""
    second: Choice | None = None

    @property
    def choices(self) -> tuple[Choice, ...]:
        return tuple(one for one in (self.choice, self.second) if one is not None)


_CAPTIONS = "(?:captions?|options?|descriptions?|choices?|statements?|answers?|sentences?)"
_WRONG = (
    r"(?:not|\w+n't|incorrect(?:ly)?|inaccura\w+|wrong(?:ly)?|false|less|fails?|mis\w+|errors?|unsuitable"
    r"|inappropriate)\b"
)
_RIGHT = (
    r"(?:better|best|closer|closest|correct(?:ly)?|right|accurate(?:ly)?|appropriate|preferable|suitable|fits?"
    r"|match(?:es)?|true|answer)\b"
)
_BETWEEN = (
    r"(?:(?:also|is|are|was|would|will|be|being|does|do|did|seems?|appears?|to|clearly|completely|simply|still|much|far"
    r"|slightly|somewhat|more|most|the|a|an|it|this|image|picture|photo|makes?|has|contains?|describes?|both)\ )"
)
_TURNS = "(?:but|so|yet|because|if|though|sure|certain|as)"  # words after which "not" says nothing of what follows
#: A verdict by its pattern; ``kind`` is in `REASONS`, or "chosen", "rejected": then the mark in the match says which.
_VERDICTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.MULTILINE))
    for kind, pattern in (
        ("contradiction", CLASH),
        (
            "neither",
            r"(?<!though )(?<!although )(?<!while )\bneither\b"
            rf"(?= ?(?:[.,;:!\n]|$|\(?{PAIR}|(?:\w+ ){{1,3}}\(?{PAIR}|of\b|(?:\w+ )?{_CAPTIONS}\b|one\b|is\b"
            r"|are\b|was\b|would\b|can\b|could\b|fits?\b|match|describes?\b|(?:accurate|correct|full|complete)ly\b))",
        ),
        (
            "neither",
            rf"\bnone\b(?= ?(?:[.,;:!\n]|$|of (?:them|these|those|the above|the two)\b|of (?:\w+ ){{1,3}}{_CAPTIONS}))",
        ),
        ("neither", rf"\bboth\b(?: (?:{_CAPTIONS}|\w+|{PAIR})){{1,6}}? {_WRONG}"),
        ("neither", rf"\b(?:cannot|can't|can not|unable|not|couldn't|no)\b[^.;\n]{{0,80}}{PAIR}"),
        ("neither", rf"{PAIR} (?:are|is) (?:both )?{_WRONG}"),
        ("neither", rf"\b{_CAPTIONS} (?:is|was) not (?:listed|provided|given|available|present|among)\b"),
        (
            "both",
            rf"^both\W*$|\bboth (?:{_CAPTIONS} )?(?:fit|match)\b"
            rf"|\b(?:both\b(?: (?:of|the|these|{_CAPTIONS}|{PAIR})){{0,4}}|{PAIR})"
            rf" (?:are|could be|would be|can be|seem|fit|match|describe) (?:\w+ )?{_RIGHT}",
        ),
        ("rejected", rf"\b(?:than|over|rather than|instead of|unlike|opposed to|nor|versus|vs\.?) (?:the )?{MARK}"),
        ("rejected", rf"\b(?:not|\w+n't|cannot|never)(?: (?!{_TURNS}\b)[\w']+){{0,3}} {MARK}"),
        ("rejected", rf"{MARK}:? (?:{_BETWEEN}{{0,5}}{_WRONG}|no\b)"),
        ("rejected", rf"\b{_WRONG}(?: \w+){{0,3}} (?:is|be) {MARK}"),
        (
            "chosen",
            r"(?:\b(?:answer|output|choose|choosing|chosen|select|pick|prefer|say|is|be|it's|go with|goes to"
            r"|clos(?:est|er) to|corresponds to|lean(?:ing)? towards?|therefore|thus|hence|so),?|[:=]|[=-]>)"
            rf"[ \n]?(?:the )?{MARK}",
        ),
        ("chosen", rf"{MARK}[,:]? (?:{_BETWEEN}{{0,5}}{_RIGHT}|yes\b)"),
    )
)
#: A line that begins with a caption, but does not go on to talk about it.
_BEGINS_LINE = re.compile(
    rf"^\W{{0,3}}?({MARK})(?! (?:and|or|is|was|would|could|does|has|describes|shows|mentions|says|states|refers|talks"
    r"|implies|suggests|depicts|\w+ly)\b)",
    re.MULTILINE,
)
_DECLINES = re.compile(r"\b(?:sorry|can't|cannot|can not|unable to|not able to|won't|as an ai|apologi[sz]e)\b")
_THOUGHTS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def parse(answer: str, captions: tuple[str, str] | None = None) -> Reading:
    """Read an answer; never raises.

    Args:
        captions: as numbered in the question, so that an answer with a caption's own text is read.
    """
    said = _said(answer)
    if isinstance(said, Reading):
        return said
    text = marked(said, captions)
    if not text:
        return Reading(None, "empty")
    return _read(text)


def _said(answer: str) -> str | Reading:
    """An answer without the thoughts before it."""
    if len(answer) > LONGEST:
        return Reading(None, "too long")
    said = _THOUGHT.split(answer)[-1]
    return Reading(None, "unfinished") if _THOUGHTS.search(said) else said


_INDICES = re.compile(
    r"(?<!\bnot )(?<!than )(?<![\w.])#?([12])(?: for the left image)? ?[;,/] ?(?:and )?#?([12])(?![\w.]?\d)"
)
_SIDED = re.compile(
    r"(?P<number>(?<![\w.])#?[12](?!\d))|\b(?P<side>left|right)\b(?=[ -]*(?:hand|side|image|picture|photo|one|[:=]))"
)


def parse_pairing(answer: str) -> Reading:
    """Which caption belongs to the left and which to the right image: "1;2", or each number with its side; the last
    such pair of numbers counts. Never raises.
    """
    said = _said(answer)
    if isinstance(said, Reading):
        return said
    text = plain(said)
    found = [(m.start(), m[1], m[2]) for m in _INDICES.finditer(text)]
    named = [(m.start(), m["number"], m["side"]) for m in _SIDED.finditer(text)]
    for four in zip(*(named[start:] for start in range(4)), strict=False):
        numbers = [number.lstrip("#") for _, number, _ in four if number]
        sides = [side for *_, side in four if side]
        if sorted(sides) == ["left", "right"] and bool(four[0][1]) == bool(four[2][1]) != bool(four[1][1]):
            found.append((four[0][0], *numbers[:: 1 if sides[0] == "left" else -1]))
    if not found:
        return Reading(None, "no choice" if text else "empty")
    _, left, right = max(found)
    return Reading(1 if left == "1" else 2, "", 1 if right == "1" else 2)


def as_published(answer: str) -> Choice | None:
    """The choice by the rule that gives all of the released evaluation's counts: "(1)" or "(2)" occurs, not both."""
    first, second = "(1)" in answer, "(2)" in answer
    return None if first == second else 1 if first else 2


def _read(text: str) -> Reading:
    found = [(kind, match) for kind, pattern in _VERDICTS for match in pattern.finditer(text)]
    rejected = {_place(match) for kind, match in found if kind == "rejected"}
    verdicts = [  # where, and what
        (_place(match), _number(match[0])) if kind == "chosen" else (match.start(), kind)
        for kind, match in found
        if kind != "rejected" and not (kind == "chosen" and _place(match) in rejected)
    ]
    begun = {m.start(1): _number(m[1]) for m in _BEGINS_LINE.finditer(text) if m.start(1) not in rejected}
    if len({*begun.values()}) == 1:  # else a list of both
        verdicts += begun.items()
    if verdicts:
        last = max(verdicts, key=lambda one: one[0])[1]
        return Reading(None, last) if isinstance(last, str) else Reading(last)
    mentioned = {_number(m[0]) for m in re.finditer(MARK, text) if m.start() not in rejected}
    if len(mentioned) == 1:
        return Reading(mentioned.pop())
    if mentioned or PAIR in text:
        return Reading(None, "both")
    return Reading(None, "refusal" if _DECLINES.search(text) else "no choice")


def _place(match: re.Match[str]) -> int:
    """Where the mark of a match is."""
    return match.start() + next(at for at, one in enumerate(match[0]) if one in (ONE, TWO))


def _number(text: str) -> Choice:
    return 1 if ONE in text else 2
