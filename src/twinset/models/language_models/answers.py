"""What a language model is asked and answers, the protocol of all engines, and answers that were paid for, on disk.

These are an SQLite file in a folder, for any number of threads and processes.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from twinset.models.engines import Engine
from twinset.shards.metering import Tally
from twinset.shards.storage.sqlite_file import connect, explained, transaction

if TYPE_CHECKING:
    from PIL.Image import Image

Schema = Mapping[str, Any]

#: Why an answer ended: of itself, at its greatest length, or never begun since the prompt was not accepted.
STOP, LENGTH, REFUSED = "stop", "length", "refused"
YES_NO = ("yes", "no")


class Message(NamedTuple):
    """A turn of a chat."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True)
class EncodedImage:
    """An image as it is sent. media_type: such as ``image/jpeg``."""

    content: bytes
    media_type: str

    @classmethod
    def png(cls, image: Image) -> EncodedImage:
        """A decoded image as PNG, which keeps all pixels."""
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "PNG")
        return cls(buffer.getvalue(), "image/png")

    @classmethod
    def jpeg(cls, image: Image, side: int, quality: int) -> EncodedImage:
        """A decoded image as JPEG, neither side longer than ``side`` pixels."""
        small, buffer = image.convert("RGB"), io.BytesIO()
        small.thumbnail((side, side))
        small.save(buffer, "JPEG", quality=quality, subsampling=0)
        return cls(buffer.getvalue(), "image/jpeg")

    @cached_property
    def name(self) -> str:
        """It in requests, by what is sent."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Request:
    """A chat whose next turn is asked for.

    seed: of the sampling, below 2**31. images: that the last turn shows; only engines that see are asked about some
    (`models.language_models.settings.LanguageModelSettings.sees`).
    """

    messages: tuple[Message, ...]
    seed: int
    images: tuple[EncodedImage, ...] = ()


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


FILE = "answers.sqlite"
_AT_A_TIME = 500  # digests of one query
_ROOM = 1 << 20  # bytes: of more answers than are on their way

_TABLES = Path(__file__).with_name("answers.sql").read_text("utf-8")
# What was refused is no answer; older files of answers hold such rows. A column of SQLite may hold any type.
_FIND = (
    "SELECT digest, CAST(text AS TEXT), CAST(finish AS TEXT), CAST(prompt_tokens AS INTEGER), "
    "CAST(completion_tokens AS INTEGER) FROM answers WHERE finish != ? AND digest IN ({})"
)
_KEEP = """
INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET
    text = excluded.text, finish = excluded.finish, prompt_tokens = excluded.prompt_tokens,
    completion_tokens = excluded.completion_tokens WHERE answers.finish = ?
"""
_COUNT = """
INSERT INTO tally VALUES (?, ?, 1, ?, ?) ON CONFLICT (model, parameters) DO UPDATE SET
    answers = answers + 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens
"""
_SPENT = """
SELECT coalesce(sum(answers), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)
FROM tally WHERE model = ?
"""


class _Kept(NamedTuple):
    digest: str
    model: str
    parameters: str
    answer: Answer


class Answers:
    """The answers in a folder.

    An answer is kept when `keep` returns: its transaction is on disk. What a killed process left half-written is rolled
    back by the next one. The rollback journal (no write-ahead log) also works on network file systems with locks.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._waiting: list[_Kept] = []
        self._hand_over, self._work = threading.Lock(), threading.Lock()
        with self._explained():
            self._database = connect(self.path, "name another folder for answers, on a disk that can be written")
            self._database.execute("PRAGMA synchronous = EXTRA")  # the folder's entry too is on disk after a commit
            self._database.executescript(_TABLES)

    def find(self, digests: Iterable[str]) -> dict[str, Answer]:
        """Those of some answers that are kept, by digest."""
        every, found = list(digests), dict[str, Answer]()
        with self._work, self._explained():
            for start in range(0, len(every), _AT_A_TIME):
                some = every[start : start + _AT_A_TIME]
                query = _FIND.format(",".join("?" * len(some)))
                found |= {row[0]: Answer(*row[1:]) for row in self._database.execute(query, (REFUSED, *some))}
        return found

    def keep(self, digest: str, model: str, parameters: str, answer: Answer) -> None:
        """Keep an answer, and count it; where there is one of this digest, that one stays, and both are counted.

        Threads that keep answers at the same time share a transaction: one sync of the disk for all.

        Args:
            parameters: of the request, but messages and seed: what `answered` is asked with.
        """
        with self._hand_over:
            self._waiting.append(_Kept(digest, model, parameters, answer))
        with self._work:
            with self._hand_over:
                batch, self._waiting = self._waiting, []
            if batch:  # else another thread kept it meanwhile
                with self._explained(), transaction(self._database):
                    self._write(batch)

    def make_room(self) -> None:
        """See that the disk has room for answers; raises `BuildFailed` where it has none, before any is paid for."""
        with self._work, self._explained():
            # Pages of what is deleted stay in the file, for the answers that come.
            self._database.execute("INSERT OR REPLACE INTO answers VALUES ('', '', zeroblob(?), '', 0, 0)", (_ROOM,))
            self._database.execute("DELETE FROM answers WHERE digest = ''")

    def _write(self, batch: list[_Kept]) -> None:
        for one in batch:
            counts = (one.answer.prompt_tokens, one.answer.completion_tokens)
            row = (one.digest, one.model, one.answer.text, one.answer.finish, *counts)
            self._database.execute(_KEEP, (*row, REFUSED))
            self._database.execute(_COUNT, (one.model, one.parameters, *counts))

    def spent(self, model: str) -> Tally:
        """What the answers of a model took, all of them, by whatever process."""
        with self._work, self._explained():
            return Tally(*self._database.execute(_SPENT, (model,)).fetchone())

    def answered(self, model: str, parameters: str) -> bool:
        """Whether the model ever answered a request with these parameters."""
        query = "SELECT 1 FROM tally WHERE model = ? AND parameters = ?"
        with self._work, self._explained():
            return self._database.execute(query, (model, parameters)).fetchone() is not None

    def close(self) -> None:
        """Close the file."""
        with self._work:
            self._database.close()

    def _explained(self) -> AbstractContextManager[None]:
        remedy = "recover it with sqlite3's .recover, or move it away: what it holds is asked and paid for again"
        return explained(self.path, "answers", remedy)
