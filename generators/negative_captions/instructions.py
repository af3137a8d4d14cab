"""Asking a language model for a negative caption, and reading what it answers.

Task and examples of each kind are data: ``manifests/vocabularies/negative_prompts.yaml``. A caption is handed over as a
JSON string, and an answer is a JSON object or it is not taken: a caption that gives orders changes nothing but its own
answer.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from twinset.generators.captions.tables import LONGEST_CAPTION
from twinset.generators.negative_captions.changes import nothing_kept, problem
from twinset.generators.negative_captions.kinds import KINDS
from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.locations import VOCABULARIES
from twinset.manifests.recipe.strict_yaml import load_yaml
from twinset.models.language_models.answers import REFUSED, STOP, Answer, Message

FILE = VOCABULARIES / "negative_prompts.yaml"

#: The JSON schema of an answer; null where nothing can be changed.
SCHEMA = {
    "type": "object",
    "properties": {"negative_caption": {"type": ["string", "null"]}},
    "required": ["negative_caption"],
    "additionalProperties": False,
}

_SHOWN = 500  # characters of an answer that is rejected
# Models mark the turns of a chat with such characters; within a caption they must not.
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>[]|"}


@dataclass(frozen=True, slots=True)
class Instructions:
    """The turns before a caption, by kind, and the digest of the file that they come from."""

    turns: Mapping[str, tuple[str, tuple[Message, ...]]]
    digest: str

    def chat(self, kind: str, caption: str) -> tuple[Message, ...]:
        """A chat whose next turn is a negative caption of a kind. The task is said in the first turn.

        Not as a system message: some models know none.
        """
        task, examples = self.turns[kind]
        first, *others = (*examples, Message("user", as_data("caption", caption)))
        return (Message("user", f"{task}\n\n{first.content}"), *others)


@cache
def instructions() -> Instructions:
    """Of the file that comes with twinset."""
    read: dict[str, Any] = load_yaml(FILE.read_bytes())
    turns = {}
    for kind in KINDS:
        said = read["kinds"][kind]
        examples: list[Message] = []
        for example in said["examples"]:
            examples.append(Message("user", as_data("caption", example["caption"])))
            examples.append(Message("assistant", as_data("negative_caption", example["negative_caption"])))
        turns[kind] = (read["task"].format(change=said["change"]), tuple(examples))
    return Instructions(turns, sha256_of_file(FILE)[0])


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


def judged(kind: str, caption: str, answer: Answer) -> Judged:
    """The negative caption in an answer, where it is one of its kind."""
    said = answer.text[:_SHOWN]
    if answer.finish == REFUSED:
        return Judged(reason="not-accepted", detail=said)
    if not answer.text.strip():
        return Judged(reason="no-answer", detail=answer.finish)
    if answer.finish not in (STOP, ""):
        return Judged(reason="off-format", detail=f"ended by {answer.finish}: {said}")
    try:
        negative = _read(answer.text)
    except (ValueError, RecursionError) as error:
        return Judged(reason="off-format", detail=f"{error}: {said}")
    if negative is None:
        return Judged(reason="nothing-to-change")
    reason = problem(KINDS[kind].type, caption, negative)
    if not reason and nothing_kept(caption, negative):
        reason = "too-much-changed"
    if reason:
        return Judged(reason=reason, detail=negative[:_SHOWN])
    return Judged(negative)


def _read(text: str) -> str | None:
    """The negative caption of an answer, None for null; raises ValueError where it is of another form."""
    fields = json.loads(text, object_pairs_hook=_once)
    if not isinstance(fields, dict) or [*fields] != ["negative_caption"]:
        raise ValueError("not an object with negative_caption alone")
    negative = fields["negative_caption"]
    if negative is None:
        return None
    if not isinstance(negative, str) or not negative.strip():
        raise ValueError("negative_caption is not a text")
    if len(negative) > LONGEST_CAPTION:
        raise ValueError(f"negative_caption has {len(negative)} characters")
    # Line breaks and other controls, and half surrogate pairs, which no file can hold.
    if any(ord(one) < 32 or ord(one) == 127 or "\ud800" <= one <= "\udfff" for one in negative):
        raise ValueError("negative_caption has characters that are not text")
    return negative.strip()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key is repeated")
    return fields
