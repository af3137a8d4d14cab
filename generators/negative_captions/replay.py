"""Negative captions as they were released, a table for later stages: SugarCrepe's JSON, tables, TROHN's Parquet."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TextIO, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.licences.terms import NOTHING, Terms
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need
from twinset.generators.annotation_files import (
    LONGEST_LINE,
    TERM_REASONS,
    SeveralFiles,
    Skipped,
    parquet_rows,
    read_json,
    text_of,
)
from twinset.generators.captions.tables import CREDIT, LICENCE, LONGEST_CAPTION, SOURCE_URL, stated_terms
from twinset.generators.negative_captions.changes import unchanged
from twinset.generators.negative_captions.kinds import COLUMNS, EVERY_KIND, NegativeCaption, NegativeKind
from twinset.generators.papers import BIVLC
from twinset.shards.contracts import Source

_IMAGE = ("filename", "image_id", "image", "file_name")
_COLUMNS = (*_IMAGE, "caption", "negative_caption", "type", "subtype", *LICENCE, *CREDIT, *SOURCE_URL)
_FORMS = "name a folder of SugarCrepe's JSON files (replace_obj.json, …) or of Parquet files, or files of these or CSV"


@dataclass(frozen=True, slots=True)
class Released:
    """A caption of an image, and its negative. record: its id; kind: None where the file does not tell."""

    record: str
    image: str
    caption: str
    negative_caption: str
    kind: NegativeKind | None
    terms: Terms = NOTHING


def released_files(paths: Sequence[Path]) -> list[Path]:
    """The files at some paths, those of a folder in the order of the kinds or of their names. Raises `WrongUse`:
    a path holds none, or two files have one name, with which the ids of their records begin.
    """
    found: list[Path] = []
    for path in paths:
        files = [path]
        if path.is_dir():
            files = [path / f"{kind}.json" for kind in EVERY_KIND if (path / f"{kind}.json").is_file()]
            files = files or sorted(file for file in path.glob("*.parquet") if file.is_file())
        if not files or not files[0].is_file() or files[0].suffix.lower() not in _READERS:
            raise WrongUse(f"{path}: holds no negative captions; {_FORMS}")
        found += files
    stems = [path.stem for path in found]
    if repeated := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise WrongUse(f"two files are called {repeated[0]!r}, with which the ids of their records begin; rename one")
    return found


def read_released(path: Path) -> Iterator[Released | Skipped]:
    """The records of a file in order, and what is left out of it.

    An id is the file's stem and the key of a JSON object, or the number of the row (from 1). Raises `WrongUse`: the
    file cannot be read, lacks a column, or nothing in it can be used.
    """
    usable, first = False, ""
    for record, fields in _READERS[path.suffix.lower()](path):
        read = _released(path, record, fields)
        usable = usable or isinstance(read, Released)
        if isinstance(read, Skipped):
            first = first or f" ({read.place}: {read.reason})"
        yield read
    if not usable:
        raise WrongUse(f"{path}: no negative caption in it can be used{first}; {_FORMS}")


def _released(path: Path, record: str, fields: Any) -> Released | Skipped:
    place = f"{path.name} {record}"
    if isinstance(fields, Skipped):
        return Skipped(place, fields.reason)
    if not isinstance(fields, Mapping):
        return Skipped(place, "not-an-object")
    caption, negative = text_of(fields.get("caption")), text_of(fields.get("negative_caption"))
    image = next((text for name in _IMAGE if (text := text_of(fields.get(name)))), "")
    kind = EVERY_KIND.get(path.stem)
    if "type" in fields or "subtype" in fields:
        kind = EVERY_KIND.get(f"{text_of(fields.get('type')).lower()}_{text_of(fields.get('subtype')).lower()}")
        if kind is None:
            return Skipped(place, "unknown-kind")
    if not caption.strip() or not negative.strip():
        return Skipped(place, "no-caption")
    if max(len(caption), len(negative)) > LONGEST_CAPTION:
        return Skipped(place, "too-long")
    if unchanged(caption, negative):
        return Skipped(place, "unchanged")
    if isinstance(terms := stated_terms(fields), str):
        return Skipped(place, terms)
    return Released(f"{path.stem}/{record}", image, caption, negative, kind, terms)


def _json(path: Path) -> Iterator[tuple[str, Any]]:
    """SugarCrepe: an object of records by number; a list is read too."""
    whole = read_json(path)
    if isinstance(whole, dict):
        yield from whole.items()
    elif isinstance(whole, list):
        yield from ((str(number), one) for number, one in enumerate(whole, 1))
    else:
        raise WrongUse(f"{path}: neither a JSON object of records nor a list of them; {_FORMS}")


def _csv(path: Path) -> Iterator[tuple[str, Any]]:
    """Rows under a line of column names, UTF-8."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(_lines(stream))
            try:
                names = rows.fieldnames or ()
            except csv.Error as error:
                raise WrongUse(f"{path}: line 1 has no names of columns ({error}); {_FORMS}") from error
            _check_columns(path, names)
            number = 0
            while True:
                number += 1
                try:
                    yield str(number), next(rows)
                except StopIteration:
                    return
                except csv.Error:  # a field longer than the module reads
                    yield str(number), Skipped("", "too-long")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path}: cannot be read to its end ({error}); save it as UTF-8 or fetch it again") from error


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines with their ends; for one that is not held, one whose field is too long for the module."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(("\n", "\r")):
            while (rest := stream.readline(LONGEST_LINE)) and not rest.endswith(("\n", "\r")):
                pass
            line = "x" * (csv.field_size_limit() + 1) + "\n"
        yield line


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    def columns(schema: pa.Schema) -> list[str]:
        _check_columns(path, schema.names)
        # A picture may lie in the column that is called image: it is no name.
        wanted = [name for name in _COLUMNS if name in schema.names]
        return [name for name in wanted if not pa.types.is_nested(schema.field(name).type)]

    yield from ((str(number), row) for number, row in enumerate(parquet_rows(path, columns), 1))


def _check_columns(path: Path, names: Sequence[str]) -> None:
    for name in ("caption", "negative_caption"):
        if name not in names:
            raise WrongUse(f"{path}: no column {name!r} (it has {', '.join(names)[:200]}); name it so")
    if repeated := next((name for name in names if name in _COLUMNS and names.count(name) > 1), None):
        raise WrongUse(f"{path}: two columns are called {repeated!r}, of which only one would be read; rename one")


_READERS = {".json": _json, ".csv": _csv, ".parquet": _parquet}


SUGARCREPE = Reference("SugarCrepe", "https://arxiv.org/abs/2306.14610", bibtex("hsieh2023sugarcrepe", "lin2014coco"))


class ReplayedNegatives(Source):
    """Negative captions of released files.

    captions: folders or files, read in this order (`generators.negative_captions.replay`). licence: of the captions.
    """

    kind: Literal["replayed-negatives"]
    captions: SeveralFiles
    licence: str = ""

    makes = "table"
    paper = BIVLC
    group = "caption"
    verb = "copied from"
    reference = SUGARCREPE
    reasons: ClassVar[Mapping[str, str]] = {**TERM_REASONS, **reasons_beside(__file__, "released")}

    def how_made(self, reports: Mapping[str, Any]) -> str:
        return (
            "Captions and negative captions were copied as they are from files, which do not say how the negative ones "
            "were written."
        )

    @property
    def made_from(self) -> Reference:
        # SugarCrepe is released as JSON, others' tables are not.
        tables = all(str(path).endswith((".csv", ".parquet")) for path in self.captions)
        return Reference("a table of negative captions") if tables else self.reference

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            with naming(f"{key}.captions"):
                released_files(self.captions)

    version = 2
    candidate = NegativeCaption
    row_schema = COLUMNS

    def inputs(self) -> str:
        """Digest of the files, with their names, which ids begin with."""
        return digest([[path.name, *sha256_of_file(path)] for path in self._files])

    def plan(self) -> Iterator[NegativeCaption]:
        """Records in the order of the files. Raises `WrongUse` for a file of which nothing can be used."""
        for path in self._files:
            for read in read_released(path):
                if isinstance(read, Skipped):
                    self.excluded.add(read.reason, read.place)
                    continue
                yield NegativeCaption(
                    **self.identified(read.record, terms=read.terms),
                    caption_id=read.record,
                    image_id=read.image,
                    image=read.image,
                    caption=read.caption,
                    negative_caption=read.negative_caption,
                    type=read.kind.type if read.kind else "",
                    subtype=read.kind.subtype if read.kind else "",
                )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows]:
        for one in cast(Sequence[NegativeCaption], candidates):
            yield TableRows(one.key, [one.row()])

    @cached_property
    def _files(self) -> list[Path]:
        return released_files(self.captions)
