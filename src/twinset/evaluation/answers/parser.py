"""Which of two captions a free answer chooses: "(1)", "Caption 2.", "Neither is right, but if I must, (2) is closer".

1. What stands before ``</think>`` is not the answer. Mentions of captions become marks (`marked`): numbers, ordinals,
   and the caption's own text.
2. **The last verdict counts**: one caption is chosen ("the answer is (1)", "(1) is closer", a line that begins with
   "(1)"), neither fits, or both.
3. Without a verdict, the only caption that is mentioned and not rejected ("not (1)", "rather than (2)", "(2) is wrong")
   is chosen. Rejecting one caption alone chooses nothing: the other one could be wrong, too.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

LONGEST = 200_000  # characters: far more than a model writes about two captions


class Reading(NamedTuple):
    """What an answer says.

    choices: number of the chosen caption in the question; of a pairing those of the left and the right image.
    reason: "" with a choice; else ``empty``, ``too long`` (over `LONGEST`), ``unfinished`` (it ends inside the model's
    thoughts), ``neither`` fits, ``both`` are named and none chosen, ``refusal``, or ``no choice``: it mentions no
    caption, or only rejects one.
    """

    choices: tuple[int, ...]
    reason: str = ""


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.MULTILINE) for pattern in patterns)


def _matches(patterns: tuple[re.Pattern[str], ...], text: str) -> list[re.Match[str]]:
    return [match for pattern in patterns for match in pattern.finditer(text)]


#: Mentions of caption 1 and 2; of both in one phrase, such as "(1) or (2)", or one's number with the other's text.
ONE, TWO, PAIR = "\ue001\ue002\ue003"
_NUMBERS = {ONE: 1, TWO: 2}
_MARK = f"(?P<mark>[{ONE}{TWO}])"
_ENDING = " .,;:!?'\n"  # around a sentence
_LEAST_WORDS = 3  # of a caption, to be found inside an answer: "a dog" is in many sentences
#: Quotation marks and the marks of Markdown and LaTeX, which only decorate.
_DECORATION = dict.fromkeys(map(ord, '"“”„«»*_`#\\$'), None) | {ord("’"): "'", ord("‘"): "'"}

_NUMBER = "(?P<number>[12])"
_NOUN = "(?:caption|option|choice|description|statement|sentence|candidate|alternative|number|answer|text)"
_NOUNS = "(?:captions?|options?|descriptions?|choices?|statements?|answers?|sentences?)"
_CUE = (
    f"(?:{_NOUN}|output|response|choose|select|pick|say|go for|(?:fits|matches|describes)(?: the image)?"
    r"|(?:best|right|correct|closest|fitting)(?: (?:one|fit|match))?)"
)
_ENDS = r"(?=\s*(?:$|[.,;:!?)\]}<\n]|because\b|since\b|as\b))(?![.,]\d)"
_VERB = "(?:is|was|would|seems|appears|describes|matches|fits|better|best|more)"
#: How captions are mentioned, most specific first. ``number``: the number or its word; ``kept``: what goes before.
_MENTIONS = _compiled(
    rf"(?P<kept>)(?:\b{_NOUN} ?)?[(\[{{] ?(?:(?:caption|option) )?{_NUMBER} ?[)\]}}]",
    rf"(?P<kept>)(?<![\w.]){_NUMBER}\)",
    rf"(?P<kept>)\b{_NOUN} ?(?:number|no\.?)? ?{_NUMBER}\b(?![.,]?\d)",
    r"(?P<kept>)\b(?:caption|option) (?:number )?(?P<number>one|two)\b",
    rf"(?P<kept>\b{_CUE}[ \n]?(?:(?:is|(?:would|should|must) be|number|[:=>\-])[ \n]?){{0,3}}){_NUMBER}{_ENDS}",
    rf"(?P<kept>\b(?:neither|nor) ){_NUMBER}\b(?![.,]?\d)",
    rf"(?P<kept>)\b(?:the )?(?P<number>first|second|1st|2nd) (?:{_NOUN}|one)\b",
    rf"(?P<kept>)\bthe (?P<number>former|latter|first|second)(?= ?(?:[.,;:!?\n]|$|{_VERB}\b))",
    rf"(?P<kept>^){_NUMBER}(?: ?[.:\-](?= |$)|(?= ?,| (?:because|since|is|best|better|fits|matches|describes)\b))",
)
_MARKS = dict.fromkeys(("1", "one", "first", "1st", "former"), ONE)
_MARKS |= dict.fromkeys(("2", "two", "second", "2nd", "latter"), TWO)
_ALONE = re.compile(r"\W*(?:the )?(1|2|one|two|first|second|1st|2nd)\W*")
#: A full stop of a quotation after which the sentence goes on.
_STOP_WITHIN = r"(?:\.(?= (?:nor|and|or|is|are|was|would|does|seems|describes|matches|fits)\b))?"
_AGAIN = re.compile(f"([{ONE}{TWO}])[ \n:.,\\-–]*\\1")  # a number and its text
_LISTED = re.compile(f"^(?:{ONE}\\W?\n{TWO}|{TWO}\\W?\n{ONE})(?=\\W?$)", re.MULTILINE)  # the question, repeated
_TOGETHER = re.compile(rf"[{ONE}{TWO}](?:[,)]? ?(?:and|or|nor|/) ?(?:\w+ ){{0,2}}\(?|[ :]*)[{ONE}{TWO}]")

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
    r"|slightly|somewhat|more|most|the|a|an|it|this|image|picture|photo|makes?|has|contains?|describes?|both) )"
)
_TURNS = "(?:but|so|yet|because|if|though|sure|certain|as)"  # words after which "not" says nothing of what follows
_REJECTED = _compiled(
    rf"\b(?:than|over|rather than|instead of|unlike|opposed to|nor|versus|vs\.?) (?:the )?{_MARK}",
    rf"\b(?:not|\w+n't|cannot|never)(?: (?!{_TURNS}\b)[\w']+){{0,3}} {_MARK}",
    rf"{_MARK}:? (?:{_BETWEEN}{{0,5}}{_WRONG}|no\b)",
    rf"\b{_WRONG}(?: \w+){{0,3}} (?:is|be) {_MARK}",
)
_CHOSEN = _compiled(
    r"(?:\b(?:answer|output|choose|choosing|chosen|select|pick|prefer|say|is|be|it's|go with|goes to"
    r"|clos(?:est|er) to|corresponds to|lean(?:ing)? towards?|therefore|thus|hence|so),?|[:=]|[=-]>)"
    rf"[ \n]?(?:the )?{_MARK}",
    rf"{_MARK}[,:]? (?:{_BETWEEN}{{0,5}}{_RIGHT}|yes\b)",
)
#: A line that begins with a caption, but does not go on to talk about it.
_BEGINS_LINE = _compiled(
    rf"^\W{{0,3}}?{_MARK}(?! (?:and|or|is|was|would|could|does|has|describes|shows|mentions|says|states|refers|talks"
    r"|implies|suggests|depicts|\w+ly)\b)",
)
_NEITHER = _compiled(
    r"(?<!though )(?<!although )(?<!while )\bneither\b"
    rf"(?= ?(?:[.,;:!\n]|$|\(?{PAIR}|(?:\w+ ){{1,3}}\(?{PAIR}|of\b|(?:\w+ )?{_NOUNS}\b|one\b|is\b"
    r"|are\b|was\b|would\b|can\b|could\b|fits?\b|match|describes?\b|(?:accurate|correct|full|complete)ly\b))",
    rf"\bnone\b(?= ?(?:[.,;:!\n]|$|of (?:them|these|those|the above|the two)\b|of (?:\w+ ){{1,3}}{_NOUNS}))",
    rf"\bboth\b(?: (?:{_NOUNS}|\w+|{PAIR})){{1,6}}? {_WRONG}",
    rf"\b(?:cannot|can't|can not|unable|not|couldn't|no)\b[^.;\n]{{0,80}}{PAIR}",
    rf"{PAIR} (?:are|is) (?:both )?{_WRONG}",
    rf"\b{_NOUNS} (?:is|was) not (?:listed|provided|given|available|present|among)\b",
)
_BOTH = _compiled(rf"\bboth\b(?=\W*$| (?:{_NOUNS} )?(?:are|fit|match)\b(?! \w*{_WRONG}))")
_DECLINES = re.compile(r"\b(?:sorry|can't|cannot|can not|unable to|not able to|won't|as an ai|apologi[sz]e)\b")


def plain(text: str) -> str:
    """Text folded for comparison: compatible characters and capitals alike, no decoration, single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_DECORATION)
    kept = "".join(letter if letter == "\n" or unicodedata.category(letter)[0] != "C" else " " for letter in folded)
    return re.sub(r" ?\n[ \n]*", "\n", re.sub(r"[^\S\n]+", " ", kept)).strip()


def marked(text: str, captions: Sequence[str]) -> str:
    """A `plain` answer with mentions replaced by marks. captions: both as numbered, or none: text that is quoted."""
    if alone := _ALONE.fullmatch(text):
        return _MARKS[alone[1]]
    quoted = [plain(caption).strip(_ENDING) for caption in captions]
    # The longer one first, since it can hold the other. Equal captions tell nothing.
    for caption, mark in sorted(zip(quoted, (ONE, TWO), strict=False), key=lambda quote: -len(quote[0])):
        if caption and len({*quoted}) == 2:
            if text.strip(_ENDING) == caption:
                return mark
            if len(caption.split()) >= _LEAST_WORDS and caption in text:
                text = re.sub(rf"(?<!\w){re.escape(caption)}(?!\w){_STOP_WITHIN}", mark, text)
    for pattern in _MENTIONS:
        text = pattern.sub(lambda match: match["kept"] + _MARKS[match["number"]], text)
    return _TOGETHER.sub(PAIR, _LISTED.sub(" ", _AGAIN.sub(r"\1", text)))


def parse(answer: str, captions: Sequence[str] = ()) -> Reading:
    """Read an answer; never raises. captions: as `marked` takes them."""
    spoken, reason = _spoken(answer)
    if reason:
        return Reading((), reason)
    text = marked(spoken, captions)
    rejected = {match.start("mark") for match in _matches(_REJECTED, text)}
    begun = [match for match in _matches(_BEGINS_LINE, text) if match.start("mark") not in rejected]
    chosen = _matches(_CHOSEN, text)
    if len({match["mark"] for match in begun}) == 1:  # else a list of both
        chosen += begun
    verdicts = [(match.start("mark"), match["mark"]) for match in chosen if match.start("mark") not in rejected]
    verdicts += [(match.start(), "neither") for match in _matches(_NEITHER, text)]
    verdicts += [(match.start(), "both") for match in _matches(_BOTH, text)]
    if verdicts:
        last = max(verdicts)[1]
        return Reading((_NUMBERS[last],)) if last in _NUMBERS else Reading((), last)
    mentions = {match[0] for match in re.finditer(_MARK, text) if match.start() not in rejected}
    if len(mentions) == 1:
        return Reading((_NUMBERS[mentions.pop()],))
    if mentions or PAIR in text:
        return Reading((), "both")
    return Reading((), "refusal" if _DECLINES.search(text) else "no choice")


def _spoken(answer: str) -> tuple[str, str]:
    """An answer without the thoughts before it, as `plain` has it, and why it cannot be read."""
    if len(answer) > LONGEST:
        return "", "too long"
    spoken = re.split("</think(?:ing)?>", answer, flags=re.IGNORECASE)[-1]
    if re.search("<think(?:ing)?>", spoken, re.IGNORECASE):
        return "", "unfinished"
    text = plain(spoken)
    return text, "" if text else "empty"


_PAIRING = re.compile(
    r"(?<![\w.])#?(?P<left>[12])(?: for the left image)? ?[;,/] ?(?:and )?#?(?P<right>[12])(?![\w.]?\d)"
)
_NOT_BEFORE = re.compile(r"(?:\bnot|n't|\bthan|\binstead of|\bover|\bunlike)(?: be| the| is)? $")
_WRONG_AFTER = re.compile(rf" (?:is|are|was|would be|seems) (?:\w+ )?{_WRONG}")


def parse_pairing(answer: str) -> Reading:
    """Which caption belongs to the left and which to the right image, as "1;2" or "#1 for the left image; #2 …" say it;
    the last pair of numbers that is not rejected counts. Never raises.
    """
    text, reason = _spoken(answer)
    accepted = [
        pair
        for pair in _PAIRING.finditer(text)
        if not _NOT_BEFORE.search(text, max(0, pair.start() - 20), pair.start())
        and not _WRONG_AFTER.match(text, pair.end())
    ]
    if not accepted:
        return Reading((), reason or "no choice")
    return Reading((int(accepted[-1]["left"]), int(accepted[-1]["right"])))


def as_published(answer: str) -> int | None:
    """The choice by the rule that gives all of the released evaluation's counts: "(1)" or "(2)" occurs, not both."""
    first, second = "(1)" in answer, "(2)" in answer
    return None if first == second else 1 if first else 2
