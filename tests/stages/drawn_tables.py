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
from twinset.contracts.canonical import digest, identity_of, sample_key, sha256_of_file
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected, TableRows
from twinset.contracts.parts import Waiting
from twinset.contracts.source import AnnotationFile, StageName
from twinset.shards.contracts import Source, TableStage


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Candidate):
    """A planned line or word."""

    text: str
    length: int = 0


class Words(Source):
    """A table: the words of lines. annotations: a JSON list of lines of text. A line without words is rejected."""

    kind: Literal["test-words"]
    annotations: AnnotationFile
    licence: str = "other: mine"

    makes = "table"
    reasons: ClassVar[Mapping[str, str]] = {"no-words": "the line holds no word"}

    version = 1
    candidate: ClassVar[type[Candidate]] = Text
    row_schema = pa.schema([("word", pa.string()), ("length", pa.int64())])

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
    row_schema = pa.schema([("word", pa.string()), ("length", pa.int64())])

    def plan(self) -> Iterator[Text]:
        rows = self.earlier().read(["key", "word", "length"]).to_pylist()
        for number, row in enumerate(row for row in rows if row["length"] >= self.least):
            key = sample_key(self.stage.name, row["key"], number)
            yield Text(
                key=key, identity=identity_of(row["key"], number), group=key, split=self.stage.split, text=row["word"],
                length=row["length"],
            )  # fmt: skip

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for one in cast(Sequence[Text], candidates):
            MADE.append(one.text)
            yield TableRows(one.key, [{"word": one.text, "length": one.length}])


class Longest(TableStage):
    """The longest words of a table, each once, first those that stand first. least: fewest letters."""

    kind: Literal["test-longest"]
    words: StageName
    least: int = 4
    licence: str = ""

    version = 1
    row_schema = pa.schema([("word", pa.string()), ("length", pa.int64())])
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
    row_schema = pa.schema([("word", pa.string()), ("length", pa.int64())])

    @cached_property
    def decisions(self) -> dict[str, str]:
        """By word."""
        return cast(dict[str, str], json.loads(self.answers.read_bytes()))

    def plan_inputs(self) -> str:
        return digest(self.decisions)

    def plan(self) -> Iterator[JudgedText]:
        for row in self._words():
            key, word = sample_key(self.stage.name, row["word"]), row["word"]
            yield JudgedText(
                key=key, identity=identity_of(word), group=key, split=self.stage.split, text=word, length=row["length"],
                decision=self.decisions.get(word, ""),
            )  # fmt: skip

    def waiting(self) -> Waiting | None:
        words = [row["word"] for row in self._words()]
        missing = sum(word not in self.decisions for word in words)
        return Waiting(missing, len(words)) if missing else None

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        for one in cast(Sequence[JudgedText], candidates):
            MADE.append(one.text)
            rows = [{"word": one.text, "length": one.length}]
            yield TableRows(one.key, rows) if one.decision == "keep" else Rejected(one.key, "dropped")

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
            key = sample_key(self.stage.name, row["word"])
            yield Text(
                key=key, identity=identity_of(row["word"]), group=key, split=self.stage.split, text=row["word"],
                length=row["length"],
            )  # fmt: skip

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        for one in cast(Sequence[Text], candidates):
            MADE.append(one.text)
            source = MediaFile(f"{one.text}.txt", one.length, "0" * 64)
            frames = [
                Frame(f"{one.text}#{grey}", np.full((16, 24, 3), grey, np.uint8), -1.0, source)
                for grey in (0, 10 * one.length)
            ]
            yield Pair(
                key=one.key,
                group=one.group,
                split=one.split,
                change="word",
                image0=frames[0],
                image1=frames[1],
                captions0=("nothing",),
                captions1=(one.text,),
                provenance={},
            )
