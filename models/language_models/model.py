"""What a language model is asked, what it answers, and the protocol that all engines keep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from twinset.manifests.tally import Tally
from twinset.models.engines import Engine

Schema = Mapping[str, Any]

#: Why an answer ended: of itself, at its greatest length, or never begun since the prompt was not accepted.
STOP, LENGTH, REFUSED = "stop", "length", "refused"


class Message(NamedTuple):
    """A turn of a chat."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """A chat whose next turn is asked for.

    seed: of the sampling, below 2**31.
    """

    messages: tuple[Message, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The next turn of a chat.

    text: of the turn, or why the model did not accept the request. finish: `STOP`, `LENGTH`, `REFUSED` or as a server
    says it. prompt_tokens, completion_tokens: tokens read and written.
    """

    text: str
    finish: str = STOP
    prompt_tokens: int = 0
    completion_tokens: int = 0


def tally_of(answer: Answer) -> Tally:
    """What an answer took; a refusal nothing."""
    return Tally() if answer.finish == REFUSED else Tally(1, answer.prompt_tokens, answer.completion_tokens)


class LanguageModel(Engine, Protocol):
    """A language model at work. micro_batch: requests."""

    def answers(self, requests: Sequence[Request], schema: Schema) -> list[Answer]:
        """An answer to each request, in order.

        Args:
            schema: the JSON schema of an answer, for engines that can be held to one.

        Raises:
            BuildFailed: the model cannot be used now; running the same command again resumes.
            OutOfMemory: a micro-batch does not fit into memory.
        """
