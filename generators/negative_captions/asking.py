"""Asking a language model for a negative caption, and reading what it answers.

Task and examples of each kind are data: ``manifests/vocabularies/negative_prompts.yaml``, or a file of the user's. A
caption is handed over as a JSON string, and an answer is a JSON object or it is not taken: a caption that gives orders
changes nothing but its own answer.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, NamedTuple, cast

from pydantic import AfterValidator, Field

from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.source import Settings
from twinset.generators.captions.tables import LONGEST_CAPTION
from twinset.generators.negative_captions.changes import problem, words
from twinset.generators.negative_captions.kinds import KINDS, Kind
from twinset.models.language_models.answers import REFUSED, STOP, Answer, Message

FILE = VOCABULARIES / "negative_prompts.yaml"
FIELD = "negative_caption"  # of an answer
#: The JSON schema of an answer; null where nothing can be changed.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {FIELD: {"type": ["string", "null"]}},
    "required": [FIELD],
    "additionalProperties": False,
}
_SHOWN = 500  # characters of an answer that is rejected
# Models mark the turns of a chat with such characters; within a caption they must not.
_ESCAPED = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>[]|"}
# Line breaks and other controls, and half surrogate pairs, which no file can hold.
_NO_TEXT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def _pattern(task: str) -> str:
    try:
        task.format(change="")
    except (AttributeError, LookupError, ValueError) as error:
        raise ValueError(f"{error}; of braces only {{change}} may stand single, double all others") from error
    return task


class Example(Settings):
    """A turn of the chat before the real caption. negative_caption: null where it cannot be changed in this way."""

    caption: str = Field(min_length=1, max_length=LONGEST_CAPTION)
    negative_caption: str | None = None


class KindPrompt(Settings):
    """What is asked for one kind. change: put in place of ``{change}`` in the task. examples: before the caption."""

    change: str = ""
    examples: tuple[Example, ...] = ()


class Prompts(Settings):
    """A file of prompts. task: said first, with ``{change}`` of the kind. kinds: by name, such as ``replace_obj``."""

    task: Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
    kinds: dict[Kind, KindPrompt] = Field(min_length=1)

    def chat(self, kind: str, caption: str) -> tuple[Message, ...]:
        """A chat whose next turn is a negative caption of a kind.

        The task is said in the first turn, not as a system message: some models know none.
        """
        asked = self.kinds[cast(Kind, kind)]
        # The task is formatted as JSON braces are doubled in it.
        said = f"{self.task.format(change=asked.change)}\n\n"
        turns: list[Message] = []
        for example in asked.examples:
            turns.append(Message("user", said + as_data("caption", example.caption)))
            turns.append(Message("assistant", as_data(FIELD, example.negative_caption)))
            said = ""
        return (*turns, Message("user", said + as_data("caption", caption)))


def as_data(name: str, text: str | None) -> str:
    """A JSON object of one text, in which no character marks a turn of a chat."""
    content = json.dumps(text, ensure_ascii=False)
    return f'{{"{name}": {content.translate(_ESCAPED)}}}'


class Judged(NamedTuple):
    """What became of an answer: a negative caption, or the reason why there is none, and what was said instead."""

    negative: str = ""
    reason: str = ""
    detail: str = ""


def judged(kind: str, caption: str, answer: Answer) -> Judged:
    """The caption in an answer, where it is one of its kind."""
    said = answer.text[:_SHOWN]
    if answer.finish == REFUSED:
        return Judged(reason="not-accepted", detail=said)
    if not answer.text.strip():
        return Judged(reason="no-answer", detail=answer.finish)
    if answer.finish not in (STOP, ""):
        return Judged(reason="off-format", detail=f"ended by {answer.finish}: {said}")
    try:
        negative = _caption_in(answer.text)
    except (ValueError, RecursionError) as error:
        return Judged(reason="off-format", detail=f"{error}: {said}")
    if negative is None:
        return Judged(reason="nothing-to-change")
    reason, first = problem(KINDS[kind].type, caption, negative), words(caption)
    if not reason and len(first) > 1 and not {*first} & {*words(negative)}:
        reason = "too-much-changed"  # it is another caption
    return Judged(reason=reason, detail=negative[:_SHOWN]) if reason else Judged(negative)


def _caption_in(text: str) -> str | None:
    """The caption of an answer, None for null; raises ValueError for another form."""
    pairs: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=list)
    if not isinstance(pairs, list) or len(pairs) != 1 or not isinstance(pairs[0], tuple) or pairs[0][0] != FIELD:
        raise ValueError(f"not an object with {FIELD} alone")
    caption = pairs[0][1]
    if caption is None:
        return None
    if not isinstance(caption, str) or not caption.strip() or len(caption) > LONGEST_CAPTION:
        raise ValueError(f"{FIELD} is not the text of a caption")
    if _NO_TEXT.search(caption):
        raise ValueError(f"{FIELD} has characters that are not text")
    return caption.strip()
