"""What a model is asked and answers, the protocol of all engines, and answers that were paid for, on disk."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from twinset.models.engines import Engine
from twinset.shards.media.decode import decode
from twinset.shards.metering import Tally
from twinset.shards.storage.sqlite_file import connect, explained, transaction

if TYPE_CHECKING:
    from PIL.Image import Image

#: Why an answer ended: of itself, at its greatest length, never begun since the request was not accepted, or broken off
#: since the network gives NaN.
STOP, LENGTH, REFUSED, NOT_A_NUMBER = "stop", "length", "refused", "not a number"
YES_NO = ("yes", "no")
LIKELY = 0.5  # that two words must have together, so that one of them is the answer


class Message(NamedTuple):
    """A turn of a chat."""

    role: Literal["user", "assistant"]
    content: str


class ShownImage:
    """An image that a request shows: encoded for servers, decoded for a network in this process.

    Args:
        image: the content of a file, or a decoded image, which is sent as PNG.
        media_type: of the content, such as ``image/jpeg``.
        key: of the image, for messages.
    """

    def __init__(self, image: bytes | Image, media_type: str = "image/png", key: str = "") -> None:
        self.image, self.media_type, self.key = image, media_type, key

    @cached_property
    def content(self) -> bytes:
        """As it is sent."""
        if isinstance(self.image, bytes):
            return self.image
        buffer = io.BytesIO()
        self.image.convert("RGB").save(buffer, "PNG")
        return buffer.getvalue()

    @cached_property
    def pixels(self) -> Image:
        """As a network sees it; raises `BrokenTar` for a file that cannot be read."""
        return decode(self.image, self.key) if isinstance(self.image, bytes) else self.image

    @cached_property
    def name(self) -> str:
        """It in requests, by what is sent."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Request:
    """A chat whose next turn is asked for.

    images: that the last turn shows; for models that see. seed: of the sampling, below 2**31. words: two words of which
    the next turn is to be one, for models that see: asked for is how likely the first one is. schema: the JSON schema
    of an answer, for models that can be held to one; others are asked for it by the prompt alone.
    """

    messages: tuple[Message, ...]
    images: tuple[ShownImage, ...] = ()
    seed: int = 0
    words: tuple[str, str] | None = None
    schema: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """All turns as one."""
        return "\n\n".join(message.content for message in self.messages)


def question(text: str, images: Sequence[ShownImage] = (), words: tuple[str, str] | None = None) -> Request:
    """A chat of one turn; arguments as of `Request`."""
    return Request((Message("user", text),), tuple(images), words=words)


def by_images(requests: Sequence[Request]) -> list[list[Request]]:
    """Runs of requests that follow each other, show the same images and want the same words."""
    alike = groupby(requests, lambda request: (*map(id, request.images), request.words))
    return [list(group) for _, group in alike]


@dataclass(frozen=True, slots=True)
class Answer:
    """The next turn of a chat.

    text: of the turn, or why the model did not accept the request. finish: `STOP`, `LENGTH`, `REFUSED`, `NOT_A_NUMBER`
    or as a server says it. prompt_tokens, completion_tokens: tokens read and written. probability: of the first of the
    request's words, 0 to 1, by the log-probabilities of the first token; None without words, or where both together
    have less than `LIKELY`:

        P(first) / (P(first) + P(second))
    """

    text: str = ""
    finish: str = STOP
    prompt_tokens: int = 0
    completion_tokens: int = 0
    probability: float | None = None

    @property
    def tally(self) -> Tally:
        """What it took; a refusal nothing."""
        return Tally() if self.finish == REFUSED else Tally(1, self.prompt_tokens, self.completion_tokens)


class LanguageModel(Engine, Protocol):
    """A model at work, in this process or on a server. micro_batch: requests."""

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """An answer to each request, in order. An image of requests that follow each other is read once for all.

        Raises:
            BrokenTar: an image cannot be read.
            BuildFailed: the model cannot be used now; running the same command again resumes.
            OutOfMemory: a pass does not fit into memory.
        """


FILE = "answers.sqlite"

_TABLES = Path(__file__).with_name("answers.sql").read_text("utf-8")
# A column of SQLite may hold any type.
_FIND = """
SELECT digest, CAST(text AS TEXT), CAST(finish AS TEXT), CAST(prompt_tokens AS INTEGER),
    CAST(completion_tokens AS INTEGER) FROM answers WHERE digest IN (SELECT value FROM json_each(?))
"""
_KEEP = "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
# Earlier versions counted by parameters of requests.
_COUNT = """
INSERT INTO tally VALUES (?, '', ?, ?, ?) ON CONFLICT (model, parameters) DO UPDATE SET
    answers = answers + excluded.answers, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens
"""
_SPENT = """
SELECT coalesce(sum(answers), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)
FROM tally WHERE model = ?
"""


class Answers:
    """The answers in a folder: an SQLite file, for any number of threads and processes.

    An answer is kept when `keep` returns: its transaction is on disk. What a killed process left half-written is rolled
    back by the next one. The rollback journal (no write-ahead log) also works on network file systems with locks.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = threading.Lock()
        with self._explained():
            self._database = connect(self.path, "name another folder for answers, on a disk that can be written")
            self._database.execute("PRAGMA synchronous = EXTRA")  # the folder's entry too is on disk after a commit
            self._database.executescript(_TABLES)

    def find(self, digests: Iterable[str]) -> dict[str, Answer]:
        """The kept answers of these digests."""
        with self._lock, self._explained():
            rows = self._database.execute(_FIND, (json.dumps(list(digests)),))
            return {digest: Answer(*columns) for digest, *columns in rows}

    def keep(self, digest: str, model: str, answer: Answer) -> None:
        """Keep an answer, and count it; where there is one of this digest, that one stays, and both are counted."""
        counts = (answer.prompt_tokens, answer.completion_tokens)
        with self._lock, self._explained(), transaction(self._database):
            self._database.execute(_KEEP, (digest, model, answer.text, answer.finish, *counts))
            self._database.execute(_COUNT, (model, 1, *counts))

    def count(self, model: str, tally: Tally) -> None:
        """Count what was paid, and is no answer."""
        with self._lock, self._explained(), transaction(self._database):
            self._database.execute(_COUNT, (model, *tally))

    def spent(self, model: str) -> Tally:
        """What the answers of a model took, all of them, by whatever process."""
        with self._lock, self._explained():
            return Tally(*self._database.execute(_SPENT, (model,)).fetchone())

    def _explained(self) -> AbstractContextManager[None]:
        remedy = "recover it with sqlite3's .recover, or move it away: what it holds is asked and paid for again"
        return explained(self.path, "answers", remedy)
