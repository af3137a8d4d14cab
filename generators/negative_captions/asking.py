"""Asking a language model for a negative caption, and reading what it answers.

Task and examples of each kind are data: ``manifests/vocabularies/negative_prompts.yaml``. A caption is handed over as a
JSON string, and an answer is a JSON object or it is not taken: a caption that gives orders changes nothing but its own
answer.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any

from pydantic import StringConstraints, ValidationError

from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.locations import VOCABULARIES
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.contracts.source import Settings
from twinset.generators.captions.tables import LONGEST_CAPTION
from twinset.generators.negative_captions.changes import problem, words
from twinset.generators.negative_captions.kinds import KINDS, NegativeCandidate
from twinset.generators.record_fields import misfit
from twinset.models.language_models.answers import REFUSED, Answer, Message

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
_LINE = StringConstraints(
    strip_whitespace=True, min_length=1, max_length=LONGEST_CAPTION, pattern=r"^[^\x00-\x1f\x7f]*$"
)


class Reply(Settings):
    """An answer in the form of `SCHEMA`: the text of a caption, on one line."""

    negative_caption: Annotated[str, _LINE] | None


@cache
def prompts() -> Any:
    """The file of prompts, whose comment says what it holds."""
    return load_yaml(FILE.read_text("utf-8"))


def chat(kind: str, caption: str) -> tuple[Message, ...]:
    """A chat whose next turn is a negative caption of a kind.

    The task is said in the first turn, not as a system message: some models know none.
    """
    asked = prompts()["kinds"][kind]
    task = prompts()["task"].replace("{change}", asked["change"]) + "\n\n"
    turns: list[Message] = []
    for example in asked["examples"]:
        turns.append(Message("user", task + as_data("caption", example["caption"])))
        turns.append(Message("assistant", as_data(FIELD, example[FIELD])))
        task = ""
    return (*turns, Message("user", task + as_data("caption", caption)))


def as_data(name: str, text: str | None) -> str:
    """A JSON object of one text, in which no character marks a turn of a chat."""
    content = json.dumps(text, ensure_ascii=False)
    return f'{{"{name}": {content.translate(_ESCAPED)}}}'


def judged(candidate: NegativeCandidate, answer: Answer) -> TableRows | Rejected:
    """The negative caption in an answer, where it is one of its kind; else the reason, and what was said instead."""
    excerpt = answer.text[:_SHOWN]
    if answer.finish == REFUSED:
        return Rejected(candidate.key, "not-accepted", excerpt)
    try:
        negative = Reply.model_validate_json(answer.text).negative_caption
    except ValidationError as error:
        return Rejected(candidate.key, "off-format", f"{misfit(error)[1]} (ended by {answer.finish}): {excerpt}")
    if negative is None:
        return Rejected(candidate.key, "nothing-to-change")
    reason, own = problem(KINDS[candidate.negative_kind][0], candidate.caption, negative), words(candidate.caption)
    if not reason and len(own) > 1 and not {*own} & {*words(negative)}:
        reason = "too-much-changed"  # it is another caption
    return Rejected(candidate.key, reason, negative[:_SHOWN]) if reason else candidate.negative(negative)
