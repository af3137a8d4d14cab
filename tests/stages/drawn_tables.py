"""Tables of these tests and pairs that are planned from them, as `tests.stages.drawn_sources`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np
import pyarrow as pa

from tests.stages.drawn_sources import MADE
from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected, TableRows
from twinset.contracts.source import AnnotationFile, StageName
from twinset.shards.contracts import Source

COLUMNS = pa.schema([("word", pa.string()), ("length", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Candidate):
    """A planned line, or word with its decision."""

    text: str
    decision: str = "keep"


class Words(Source):
    """A table: the words of lines. annotations: a JSON list of lines of text. A line without words is rejected."""

    kind: Literal["test-words"]
    annotations: AnnotationFile
    licence: str = "other: mine"

    makes = "table"
    reasons: ClassVar[Mapping[str, str]] = {"no-words": "the line holds no word"}
    version = 1
    candidate: ClassVar[type[Candidate]] = Text
    row_schema = COLUMNS

    def inputs(self) -> str:
        return sha256_of_file(self.annotations)[0]

    def plan(self) -> Iterator[Text]:
        for number, text in enumerate(json.loads(self.annotations.read_bytes())):
            yield Text(**self.identified(number), text=text)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for line in cast(Sequence[Text], candidates):
            MADE.append(line.text)
            rows = [{"word": word, "length": len(word)} for word in line.text.split()]
            yield TableRows(line.key, rows) if rows else Rejected(line.key, "no-words", repr(line.text))


class Longer(Source):
    """A table planned from another: its longer words. answers: of people, word -> ``keep`` or ``drop``, in JSON."""

    kind: Literal["test-longer"]
    words: StageName
    least: int = 0
    answers: AnnotationFile | None = None
    licence: str = "other: mine"

    makes = "table"
    reasons: ClassVar[Mapping[str, str]] = {"dropped": "a person dropped it"}
    version = 1
    candidate = Text
    row_schema = COLUMNS

    @cached_property
    def decisions(self) -> dict[str, str]:
        """By word."""
        if self.answers is None:
            return dict.fromkeys(self._words(), "keep")
        return cast(dict[str, str], json.loads(self.answers.read_bytes()))

    def plan_inputs(self) -> str:
        return digest(self.decisions) if self.answers else ""

    def plan(self) -> Iterator[Text]:
        for word in self._words():
            yield Text(**self.identified(word), text=word, decision=self.decisions.get(word, ""))

    def waiting(self) -> tuple[int, int] | None:
        words = self._words()
        missing = sum(word not in self.decisions for word in words)
        return (missing, len(words)) if missing else None

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for word in cast(Sequence[Text], candidates):
            MADE.append(word.text)
            rows = [{"word": word.text, "length": len(word.text)}]
            yield TableRows(word.key, rows) if word.decision == "keep" else Rejected(word.key, "dropped")

    def _words(self) -> list[str]:
        words = self.earlier().read(["word"])["word"].to_pylist()
        return [word for word in words if len(word) >= self.least]


class Said(Source):
    """Pairs that are planned from a table: a word in black and one in the grey of its length."""

    kind: Literal["test-said"]
    words: StageName
    licence: str = "other: mine"
    version = 1
    candidate = Text

    def plan(self) -> Iterator[Text]:
        for word in self.earlier().read(["word"])["word"].to_pylist():
            yield Text(**self.identified(word), text=word)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        for word in cast(Sequence[Text], candidates):
            MADE.append(word.text)
            source = MediaFile(f"{word.text}.txt", len(word.text), "0" * 64)
            black, grey = (
                Frame(f"{word.text}#{grey}", np.full((16, 24, 3), grey, np.uint8), -1.0, source)
                for grey in (0, 10 * len(word.text))
            )
            words: dict[str, Any] = {"captions0": ("nothing",), "captions1": (word.text,), "provenance": {}}
            yield Pair(**word.placed, change="word", image0=black, image1=grey, **words)
