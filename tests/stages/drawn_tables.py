"""Tables of these tests and pairs that are planned from them, as `tests.stages.drawn_sources`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np
import polars as pl
import pyarrow as pa

from tests.stages.drawn_sources import MADE
from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected, TableRows
from twinset.contracts.parts import Waiting
from twinset.contracts.source import AnnotationFile, StageName
from twinset.shards.contracts import Source, TableStage

COLUMNS = pa.schema([("word", pa.string()), ("length", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Candidate):
    """A planned line or word."""

    text: str
    length: int = 0

    @property
    def row(self) -> dict[str, Any]:
        return {"word": self.text, "length": self.length}


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
    """A table that is planned from another: its words of some length."""

    kind: Literal["test-longer"]
    words: StageName
    least: int = 0
    licence: str = "other: mine"

    makes = "table"

    version = 1
    candidate = Text
    row_schema = COLUMNS

    def plan(self) -> Iterator[Text]:
        rows = self.earlier().read(["key", "word", "length"]).to_pylist()
        for number, row in enumerate(row for row in rows if row["length"] >= self.least):
            yield Text(**self.identified(row["key"], number), text=row["word"], length=row["length"])

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for word in cast(Sequence[Text], candidates):
            MADE.append(word.text)
            yield TableRows(word.key, [word.row])


class Longest(TableStage):
    """The longest words of a table, each once, first those that stand first. least: fewest letters."""

    kind: Literal["test-longest"]
    words: StageName
    least: int = 4
    licence: str = ""

    version = 1
    row_schema = COLUMNS
    reasons: ClassVar[Mapping[str, str]] = {"short": "the word has too few letters"}

    def transform(self, *tables: pl.LazyFrame) -> pl.LazyFrame:
        (words,) = tables
        short = words.filter(pl.col("length") < self.least).collect()
        for key in short["key"]:
            self.excluded.add("short", key)
        kept = words.filter(pl.col("length") >= self.least).unique("word", keep="first", maintain_order=True)
        return kept.with_columns(pl.format('["{}"]', pl.col("word")).alias("identity"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedText(Text):
    """A planned word with its decision, empty until there is one."""

    decision: str


class Judged(Source):
    """A table of the words that people keep. answers: a JSON object, word -> ``keep`` or ``drop``."""

    kind: Literal["test-judged"]
    words: StageName
    answers: AnnotationFile
    licence: str = "other: mine"

    makes = "table"
    reasons: ClassVar[Mapping[str, str]] = {"dropped": "a person dropped it"}

    version = 1
    candidate = JudgedText
    row_schema = COLUMNS

    @cached_property
    def decisions(self) -> dict[str, str]:
        """By word."""
        return cast(dict[str, str], json.loads(self.answers.read_bytes()))

    def plan_inputs(self) -> str:
        return digest(self.decisions)

    def plan(self) -> Iterator[JudgedText]:
        for row in self._words():
            decision = self.decisions.get(row["word"], "")
            yield JudgedText(**self.identified(row["word"]), text=row["word"], length=row["length"], decision=decision)

    def waiting(self) -> Waiting | None:
        words = [row["word"] for row in self._words()]
        missing = sum(word not in self.decisions for word in words)
        return Waiting(missing, len(words)) if missing else None

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for word in cast(Sequence[JudgedText], candidates):
            MADE.append(word.text)
            yield TableRows(word.key, [word.row]) if word.decision == "keep" else Rejected(word.key, "dropped")

    def _words(self) -> list[dict[str, Any]]:
        return self.earlier().read(["word", "length"]).to_pylist()


class Said(Source):
    """Pairs that are planned from a table: a word in black and one in the grey of its length."""

    kind: Literal["test-said"]
    words: StageName
    licence: str = "other: mine"

    version = 1
    candidate = Text

    def plan(self) -> Iterator[Text]:
        for row in self.earlier().read(["word", "length"]).to_pylist():
            yield Text(**self.identified(row["word"]), text=row["word"], length=row["length"])

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        for word in cast(Sequence[Text], candidates):
            MADE.append(word.text)
            source, placed = MediaFile(f"{word.text}.txt", word.length, "0" * 64), word.placed
            black, grey = (
                Frame(f"{word.text}#{grey}", np.full((16, 24, 3), grey, np.uint8), -1.0, source)
                for grey in (0, 10 * word.length)
            )
            words: dict[str, Any] = {"captions0": ("nothing",), "captions1": (word.text,), "provenance": {}}
            yield Pair(**placed, change="word", image0=black, image1=grey, **words)
