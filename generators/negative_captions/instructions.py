"""Asking a language model for a negative caption, and reading what it answers.

Task and examples of each kind are data: ``manifests/vocabularies/negative_prompts.yaml``, or a file of the user's. A
caption is handed over as a JSON string, and an answer is a JSON object or it is not taken: a caption that gives orders
changes nothing but its own answer. Prompts written for others, such as TROHN's, can mark the answer by words instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, field_validator, model_validator

from twinset.contracts.errors import WrongUse, suggested
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import read_words
from twinset.contracts.source import Settings
from twinset.generators.captions.tables import LONGEST_CAPTION
from twinset.generators.negative_captions.changes import nothing_kept, problem
from twinset.generators.negative_captions.kinds import EVERY_KIND
from twinset.models.files import sha256_once
from twinset.models.language_models.answers import REFUSED, STOP, Answer, Message

T = TypeVar("T")
FILE = VOCABULARIES / "negative_prompts.yaml"

FIELD = "negative_caption"  # of an answer


def schema_of(field: str) -> dict[str, Any]:
    """The JSON schema of an answer; null where nothing can be changed."""
    return {
        "type": "object",
        "properties": {field: {"type": ["string", "null"]}},
        "required": [field],
        "additionalProperties": False,
    }


_SHOWN = 500  # characters of an answer that is rejected
# Models mark the turns of a chat with such characters; within a caption they must not.
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>[]|"}
_LEFT_OUT = dict.fromkeys(_ESCAPED, " ")


class Example(Settings):
    """A turn of the chat before the real caption.

    caption: that is handed over. negative_caption: of the answer; null where a caption cannot be changed in this way.
    answer: the whole answer instead, where the kind has ``answer_after``.
    """

    caption: str = Field(min_length=1, max_length=LONGEST_CAPTION)
    negative_caption: str | None = None
    answer: str = ""


class KindPrompt(Settings):
    """What is asked for one kind.

    change: put in place of ``{change}`` in the task. task: in place of the file's. examples: turns before the caption.
    answer_after: words after which an answer says its caption, up to the end of the line; empty: an answer is a JSON
    object.
    """

    change: str = ""
    task: str = ""
    examples: tuple[Example, ...] = ()
    answer_after: str = ""

    @model_validator(mode="after")
    def _examples_are_answers(self) -> KindPrompt:
        for number, one in enumerate(self.examples):
            if bool(one.answer) is not bool(self.answer_after):
                needed = "answer" if self.answer_after else "negative_caption"
                raise ValueError(f"examples.{number} needs {needed}, as answer_after is {self.answer_after!r}")
        return self


class Prompts(Settings):
    """A file of prompts.

    task: said first, with ``{change}`` of the kind. photo: said after it where the model sees the photo. kinds: by
    name, such as ``replace_obj``.
    """

    task: str = Field(min_length=1)
    photo: str = ""
    kinds: dict[str, KindPrompt] = Field(min_length=1)

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: dict[str, KindPrompt]) -> dict[str, KindPrompt]:
        for name in kinds:
            if name not in EVERY_KIND:
                raise ValueError(f"{name} is no kind; {suggested(name, [*EVERY_KIND])}")
        return kinds


@dataclass(frozen=True, slots=True)
class Instructions:
    """The prompts of a file, and its digest."""

    prompts: Prompts
    digest: str

    def chat(self, kind: str, caption: str, seen: bool = False) -> tuple[Message, ...]:
        """A chat whose next turn is a negative caption of a kind. The task is said in the first turn.

        Not as a system message: some models know none. seen: whether the last turn shows the photo.
        """
        asked = self.prompts.kinds[kind]
        turns: list[Message] = []
        for one in asked.examples:
            turns.append(Message("user", self._handed(kind, one.caption)))
            turns.append(Message("assistant", one.answer or as_data(FIELD, one.negative_caption)))
        first, *others = (*turns, Message("user", self._handed(kind, caption)))
        # The task is formatted as JSON braces are doubled in it.
        task = (asked.task or self.prompts.task).format(change=asked.change)
        said = [task, *([self.prompts.photo] if seen and self.prompts.photo else []), first.content]
        return (Message("user", "\n\n".join(said)), *others)

    def negative_in(self, kind: str, text: str) -> str | None:
        """The negative caption of an answer, None where it says that there is none; ValueError for another form."""
        marker = self.prompts.kinds[kind].answer_after
        if not marker:
            return texts_in(text, FIELD)[0]
        _, found, after = text.rpartition(marker)
        if not found:
            raise ValueError(f"no {marker!r} in it")
        line = after.strip().partition("\n")[0].strip().strip('"')
        return _text(line, FIELD) if line else None

    def _handed(self, kind: str, caption: str) -> str:
        if not self.prompts.kinds[kind].answer_after:
            return as_data("caption", caption)
        return " ".join(caption.translate(_LEFT_OUT).split())


def instructions(path: Path | None = None) -> Instructions:
    """Of a file of prompts, that of twinset where absent; read again when it changed.

    Raises `WrongUse`: the file cannot be read, has an unknown field, or its task is not a pattern of ``{change}``.
    """
    try:
        return _instructions(path or FILE, sha256_once(path or FILE))
    except OSError as error:
        raise WrongUse(f"{path}: cannot be read ({error.strerror}); name a file of prompts") from error


@cache
def _instructions(path: Path, digest: str) -> Instructions:
    prompts = read_words(path, Prompts)
    try:
        for task in (prompts.task, *(one.task for one in prompts.kinds.values())):
            task.format(change="")
    except (AttributeError, LookupError, ValueError) as error:
        raise WrongUse(
            f"{path}: task: {error}; of braces only {{change}} may stand single, double all others"
        ) from error
    return Instructions(prompts, digest)


def as_data(name: str, text: str | None) -> str:
    """A JSON object of one text, in which no character marks a turn of a chat."""
    content = json.dumps(text, ensure_ascii=False)
    return f'{{"{name}": {content.translate(_ESCAPED)}}}'


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of an answer: a negative caption, or the reason why there is none, and what was said instead."""

    negative: str = ""
    reason: str = ""
    detail: str = ""


def answered(answer: Answer, read: Callable[[str], T]) -> T | Judged:
    """What is read of an answer, or why there is none. read: raises ValueError for a text of another form."""
    said = answer.text[:_SHOWN]
    if answer.finish == REFUSED:
        return Judged(reason="not-accepted", detail=said)
    if not answer.text.strip():
        return Judged(reason="no-answer", detail=answer.finish)
    if answer.finish not in (STOP, ""):
        return Judged(reason="off-format", detail=f"ended by {answer.finish}: {said}")
    try:
        return read(answer.text)
    except (ValueError, RecursionError) as error:
        return Judged(reason="off-format", detail=f"{error}: {said}")


def judged(asked: Instructions, kind: str, caption: str, answer: Answer) -> Judged:
    """The caption in an answer, where it is one of its kind."""
    negative = answered(answer, lambda text: asked.negative_in(kind, text))
    if isinstance(negative, Judged):
        return negative
    if negative is None:
        return Judged(reason="nothing-to-change")
    reason = problem(EVERY_KIND[kind].type, caption, negative)
    if not reason and nothing_kept(caption, negative):
        reason = "too-much-changed"
    if reason:
        return Judged(reason=reason, detail=negative[:_SHOWN])
    return Judged(negative)


def texts_in(text: str, *names: str) -> list[str | None]:
    """The texts, or None for null, of a JSON object with these fields alone; raises ValueError for another form."""
    fields = json.loads(text, object_pairs_hook=_once)
    if not isinstance(fields, dict) or {*fields} != {*names}:
        raise ValueError(f"not an object with {' and '.join(names)} alone")
    return [None if fields[name] is None else _text(fields[name], name) for name in names]


def _text(caption: object, field: str) -> str:
    if not isinstance(caption, str) or not caption.strip():
        raise ValueError(f"{field} is not a text")
    if len(caption) > LONGEST_CAPTION:
        raise ValueError(f"{field} has {len(caption)} characters")
    # Line breaks and other controls, and half surrogate pairs, which no file can hold.
    if any(ord(one) < 32 or ord(one) == 127 or "\ud800" <= one <= "\udfff" for one in caption):
        raise ValueError(f"{field} has characters that are not text")
    return caption.strip()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key is repeated")
    return fields
