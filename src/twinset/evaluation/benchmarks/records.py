"""Benchmarks in files of records, and the shapes that most of them have: two images with two captions, one image with
several captions. A reader of such a benchmark declares its files and the names of their fields.
"""

import csv
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.json_items import json_items, list_of, number_of, object_of, text_of
from twinset.evaluation.benchmarks.parquet_rows import ParquetRows, parquet_splits
from twinset.evaluation.benchmarks.reader import MISSING, SAME_CAPTIONS, Item, Reader, all_alike, image_group
from twinset.evaluation.examples import LeftOut, Matching, Picture, Query
from twinset.generators.annotation_files import Skipped, read_bytes, read_json_lines

REFETCH = "fetch the file again"
_Read = tuple[str, str, Mapping[str, Any]]  # place, number and fields of a record


class _Absent(Exception):
    """The image that a record names is not there."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file. where: for messages. number: its place from 0, or its key in a JSON object.

    fields: by name. find: gives the picture that a field names or, in Parquet, holds; None where it is not there.
    """

    subset: str
    where: str
    number: str
    fields: Mapping[str, Any]
    find: Callable[["Record", str], Picture | None]

    def text(self, field: str) -> str:
        """The text in a field; raises `WrongUse` where there is none."""
        return text_of(self.fields, field, self.where)

    def whole(self, field: str) -> int:
        """The whole number in a field; raises `WrongUse` where there is none."""
        return number_of(self.fields, field, self.where)

    def texts(self, field: str) -> list[str]:
        """The texts in a field; raises `WrongUse` where it is not a list of them."""
        return [text_of({field: one}, field, self.where) for one in list_of(self.fields, field, self.where)]

    def picture(self, field: str) -> Picture:
        """The image of a field; where it is absent, the record is left out."""
        return present(self.find(self, field), self.fields.get(field))


def present(found: Picture | None, name: Any) -> Picture:
    """A picture that was looked for by a name; where it is absent, the record that asked for it is left out."""
    if found is None:
        raise _Absent(name)
    return found


class Records(Reader):
    """A benchmark whose subsets are files of records.

    every: file of each subset below the folder or its ``data``, packed (``.gz``) or not: JSON, JSON lines (``.jsonl``)
    or CSV. splits: split of Parquet files that may hold a subset instead; image_fields, word_fields: their columns.
    positions: names of fields where records are lists, or for a CSV whose header is not relied on. together: records
    that make one example; fields of the n-th get ``_n`` behind.
    """

    every: ClassVar[Mapping[str, str]] = {}
    splits: ClassVar[Mapping[str, str]] = {}
    image_fields: ClassVar[Sequence[str]] = ()
    word_fields: ClassVar[Sequence[str]] = ()
    positions: ClassVar[Sequence[str]] = ()
    together: ClassVar[int] = 1

    @abstractmethod
    def example(self, record: Record) -> Item:
        """What a record asks."""

    def layout(self) -> Mapping[str, str]:
        """The file of each subset, as `every`."""
        return self.every

    def image_name(self, record: Record, field: str) -> str:
        """The name of the file that a field of a record names."""
        name = record.fields.get(field)
        if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
            found = str(name)[:50]
            raise WrongUse(f"{record.where}: no name of an image in the field {field!r} ({found!r}); {REFETCH}")
        return str(name)

    def found(self) -> Sequence[str]:
        return [subset for subset in self.layout() if self._paths(subset)]

    def files(self) -> Sequence[Path]:
        return [path for subset in self.subsets for path in self._paths(subset)]

    def items(self, subset: str) -> Iterator[Item]:
        for record in self.records(subset):
            try:
                yield self.example(record)
            except _Absent as absent:
                yield LeftOut(f"{record.where}: {absent}", MISSING)

    def records(self, subset: str) -> Iterator[Record]:
        """All records of a subset, in the order of the file; raises `WrongUse` for one that cannot be read."""
        number = 0
        for path in self._paths(subset):
            if path.suffix == ".parquet":
                rows = ParquetRows(path, self.image_fields, self.word_fields)
                for at, fields in enumerate(rows.rows()):
                    find = partial(_within, rows, at)
                    yield Record(subset, f"{path} row {at}", str(number), fields, find)
                    number += 1
                continue
            read = read_records(path, self.positions)
            while some := [*islice(read, self.together)]:
                where = f"{path} {some[0][0]}"
                if len(some) < self.together:
                    raise WrongUse(f"{where}: {len(some)} of the {self.together} records of an example; {REFETCH}")
                fields = some[0][2] if self.together == 1 else _joined(some)
                name = some[0][1] if self.together == 1 else str(number)
                yield Record(subset, where, name, fields, self._named)
                number += 1

    def _named(self, record: Record, field: str) -> Picture | None:
        return self.images.find(self.image_name(record, field), record.where)

    def _paths(self, subset: str) -> Sequence[Path]:
        file = self.layout()[subset]
        names = (f"{folder}{file}{packed}" for folder in ("", "data/") for packed in ("", ".gz")) if file else ()
        path = next((path for name in names if (path := self.data / name).is_file()), None)
        return self._splits.get(self.splits.get(subset, ""), []) if path is None else [path]

    @cached_property
    def _splits(self) -> Mapping[str, Sequence[Path]]:
        return parquet_splits(self.data) if self.splits else {}


def _within(rows: ParquetRows, at: int, record: Record, field: str) -> Picture:
    """The image in a column of a row of Parquet."""
    return rows.picture(at, field)


def read_records(path: Path, positions: Sequence[str] = ()) -> Iterator[_Read]:
    """Place, number and fields of each record of a file; arguments as `Records` has them."""
    name = path.name.removesuffix(".gz")
    kind = _csv_rows if name.endswith(".csv") else _json_lines if name.endswith(".jsonl") else _json_records
    for place, number, record in kind(path, positions):
        if isinstance(record, list) and positions:
            if len(record) < len(positions):
                raise WrongUse(f"{path} {place}: not a list of {', '.join(positions)}; {REFETCH}")
            record = dict(zip(positions, record, strict=False))
        yield place, number, object_of(record, f"{path} {place}")


def _json_records(path: Path, positions: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    return ((f"record {key!r}", key, record) for key, record in json_items(path))


def _json_lines(path: Path, positions: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    for number, (line, record) in enumerate(read_json_lines(path)):
        if isinstance(record, Skipped):
            raise WrongUse(f"{path} line {line}: {record.reason}; {REFETCH}")
        yield f"line {line}", str(number), record


def _csv_rows(path: Path, positions: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """As `_read`. Raises `WrongUse` for a row that is shorter than the header, or too short for the positions."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WrongUse(f"{path}: byte {error.start} is not UTF-8; {REFETCH}") from error
    rows = csv.reader(StringIO(text, newline=""))
    names = list(positions) or next(rows, [])
    if positions:
        next(rows, None)
    for number, row in enumerate(row for row in rows if row):
        where = f"row {number + 1}"
        if len(row) != len(names):
            raise WrongUse(f"{path} {where}: {len(row)} columns, not {', '.join(names)}; {REFETCH}")
        yield where, str(number), dict(zip(names, row, strict=True))


def _joined(records: Sequence[_Read]) -> Mapping[str, Any]:
    return {f"{name}_{at}": value for at, (_, _, fields) in enumerate(records) for name, value in fields.items()}


class TwoByTwo(Records):
    """Two images and a caption of each.

    images_of, captions_of: fields of a record. identity: field that tells records apart; "" for their numbers. kind:
    field of the category.
    """

    images_of: ClassVar[tuple[str, str]]
    captions_of: ClassVar[tuple[str, str]]
    identity: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    def captions(self, record: Record) -> tuple[str, str]:
        """The captions of the first and the second image."""
        return record.text(self.captions_of[0]), record.text(self.captions_of[1])

    def example(self, record: Record) -> Item:
        first, second = (record.picture(field) for field in self.images_of)
        key = f"{record.subset}/{record.fields.get(self.identity, record.number)}"
        return Matching(
            key=key,
            subset=record.subset,
            group=key,
            category=str(record.fields.get(self.kind) or ""),
            images=(first, second),
            captions=self.captions(record),
        )


class OneImage(Records):
    """One image and captions, of which the first is right.

    ranked: whether they are asked for as a gallery, as more than two must be; its recall@1 is the accuracy.
    """

    image_of: ClassVar[str] = "image"
    ranked: ClassVar[bool] = False

    @abstractmethod
    def options(self, record: Record) -> Sequence[str]:
        """The captions of a record."""

    def right(self, record: Record) -> frozenset[int]:
        """The places of the right ones."""
        return frozenset({0})

    def category(self, record: Record) -> str:
        """The subset, unless a benchmark says more."""
        return record.subset

    def group(self, record: Record) -> str:
        """The image, by its name."""
        return image_group(str(record.fields[self.image_of]))

    def picture(self, record: Record) -> Picture:
        """The image, or what is cut out of it."""
        return record.picture(self.image_of)

    def example(self, record: Record) -> Item:
        picture, said = self.picture(record), tuple(self.options(record))
        key, group, category = f"{record.subset}/{record.number}", self.group(record), self.category(record)
        about: dict[str, Any] = {"key": key, "subset": record.subset, "group": group, "category": category}
        if self.ranked:
            targets = all_alike(said, self.right(record))
            return Query(image=picture, text=None, gallery=said, targets=targets, **about)
        if said[0] == said[1]:
            return LeftOut(record.where, SAME_CAPTIONS)
        return Matching(images=(picture,), captions=(said[0], said[1]), **about)
