"""The text of an answer with every mention of a caption replaced by one mark, so that phrases are matched on marks.

"The first caption", "(1)", "Option 1" and a quotation of caption 1 all become `ONE`. Marks are characters for private
use, which are removed from the answer first: an answer cannot forge them.
"""

import re
import unicodedata

#: Mentions of caption 1 and 2; of both in one phrase, such as "(1) or (2)"; of one's number with the other's text.
ONE, TWO, PAIR, CLASH = "\ue001", "\ue002", "\ue003", "\ue004"
MARK = f"[{ONE}{TWO}]"
_QUOTED = {1: "\ue011", 2: "\ue012"}  # the text of a caption
_EITHER_QUOTED = f"[{''.join(_QUOTED.values())}]"

_ENDING = " .,;:!?'\n"  # around a sentence
LEAST_WORDS = 3  # of a caption, to be found inside an answer: "a dog" is in many sentences

_NOUN = "(?:caption|option|choice|description|statement|sentence|candidate|alternative|number|answer|text)"
_CUE = "(?:answer|choice|output|response|choose|select|pick|say|caption|option)"
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
