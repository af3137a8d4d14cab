"""Rows of annotation files in any of the formats that benchmarks come in, and images in the columns of Parquet."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import AfterValidator, StrictInt, TypeAdapter, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Picture
from twinset.generators.annotation_files import Skipped, read_json, read_records
from twinset.generators.record_fields import Name, misfit
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.tar_reader import MEMBER_LIMIT

REFETCH = "fetch the file again"
BATCH = 16  # rows whose images are held
PART = re.compile(r"(?P<split>.+)-(?P<number>\d{5})-of-(?P<parts>\d{5})(-[0-9a-f]+)?")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("Input should be text that is not blank")
    return text


#: Text that is not blank.
Text = Annotated[str, AfterValidator(_not_blank)]
TEXT, TEXTS, WHOLE = TypeAdapter[str](Text), TypeAdapter[list[str]](list[Text]), TypeAdapter[int](StrictInt)
NAME = TypeAdapter[str](Name)  # of a file, or its number
WORD = TypeAdapter[str | int | None](str | int | None)
_OBJECT = TypeAdapter[dict[str, Any]](dict[str, Any])
T = TypeVar("T")


def checked(value: Any, form: TypeAdapter[T], where: str) -> T:
    """A value in its form; raises `WrongUse` with the place, what is wrong there, and the remedy."""
    try:
        return form.validate_python(value)
    except ValidationError as error:
        raise WrongUse(f"{where}: {misfit(error)[1]}; {REFETCH}") from error


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file of a subset.

    where: file and place, for messages. number: its place from 0 in the subset, or its key in a JSON object. fields: by
    name. stored, at: of Parquet, the images of the file, and the place of the row in it.
    """

    subset: str
    where: str
    number: str
    fields: dict[str, Any]
    stored: "ParquetImages | None" = None
    at: int = 0

    def value(self, field: str, form: TypeAdapter[T]) -> T:
        """What a field holds; raises `WrongUse` where it is absent or of another form."""
        if field not in self.fields:
            there = ", ".join(map(str, self.fields))[:200]
            raise WrongUse(f"{self.where}: no field {field!r} (it has {there}); {REFETCH}")
        return checked(self.fields[field], form, f"{self.where}, field {field!r}")

    def text(self, field: str) -> str:
        """As `value`: a text that is not blank."""
        return self.value(field, TEXT)

    def word(self, field: str) -> str:
        """A text or a whole number, as text; empty where there is none."""
        value = self.value(field, WORD)
        return "" if value is None else str(value)


def read_values(path: Path, member: str = "", columns: Sequence[str] = ()) -> Iterator[tuple[str, str, Any]]:
    """Place, number and value of each record of a file, in order.

    Args:
        path: JSON, which is held whole, or a format of `generators.annotation_files.FORMS`, packed (``.gz``) or not.
        member: of the object in a JSON file whose records are read; the whole file when empty.
        columns: that a table must have; of Parquet no others are read.

    Raises:
        WrongUse: the file or a record cannot be read, or a column or the member is absent.
    """
    if path.name.removesuffix(".gz").endswith(".json"):
        held = read_json(path)
        if member:
            held = Row("", str(path), "", checked(held, _OBJECT, str(path))).value(member, TypeAdapter(Any))
        items = enumerate(held) if isinstance(held, list) else checked(held, _OBJECT, str(path)).items()
        yield from ((f"{path} record {key!r}", str(key), value) for key, value in items)
        return
    for number, (place, value) in enumerate(read_records(path, columns, remedy=REFETCH)):
        where = f"{path.parent}/{place}"
        if isinstance(value, Skipped):
            raise WrongUse(f"{where}: {value.reason}; {REFETCH}")
        yield where, str(number), value


def read_rows(path: Path, subset: str, columns: Sequence[str] = (), images: Sequence[str] = ()) -> Iterator[Row]:
    """The records of a file as rows. Arguments and errors as `read_values`. images: columns of images in Parquet."""
    stored = ParquetImages(path, images) if path.suffix == ".parquet" and images else None
    for at, (where, number, value) in enumerate(read_values(path, columns=columns)):
        yield Row(subset, where, number, checked(value, _OBJECT, where), stored, at)


class ParquetImages:
    """The encoded images of a Parquet file, as Hugging Face stores them, read when they are asked for.

    They are read in batches from where the last one was, so that asking in order reads the file once. A batch is held
    and the page that it lies in: at most a row group, for which Hugging Face takes 100 rows of images.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """columns: of ``{bytes, path}``. Raises `WrongUse`: the file is damaged, or a column holds no images."""
        self.path, self._columns, self._lock = path, [f"{name}.bytes" for name in columns], Lock()
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._batch: Any = ()
        self._start = 0  # row that the batch begins with
        with _naming(path, "its footer"), pq.ParquetFile(path, pre_buffer=False) as file:
            schema, metadata = file.schema_arrow, file.metadata
            groups = (metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
            self._ends = list(accumulate(groups))  # row after the last of each group
        for name in columns:
            at = schema.get_field_index(name)  # -1 where no column, or more than one, is called so
            if at < 0 or not pa.types.is_struct(schema.types[at]) or schema.types[at].get_field_index("bytes") < 0:
                raise WrongUse(f"{path}: no column {name!r} of images, or two (it has {schema.names}); {REFETCH}")

    def picture(self, row: int, column: str) -> Picture:
        """The image of a row, from 0."""
        return Picture(f"{self.path} row {row + 1} {column}", partial(self._read, row, column))

    def content(self, row: int, column: str) -> bytes:
        """The bytes of an image; empty where the row has none."""
        with self._lock, _naming(self.path, f"row {row + 1} {column}"):
            self._seek(row)
            return bytes(self._batch.column(column).field("bytes")[row - self._start].as_py() or b"")

    def _read(self, row: int, column: str) -> bytes:
        if not (content := self.content(row, column)):
            raise WrongUse(f"{self.path}: row {row + 1} {column} holds no image; {REFETCH}")
        return content

    def _seek(self, row: int) -> None:
        """Have the batch that holds a row: the next one most of the time, else from the start of its row group."""
        group = bisect_right(self._ends, row)
        first = self._ends[group - 1] if group else 0
        if not len(self._batch) or row < self._start or first > self._start + len(self._batch):
            groups = range(group, len(self._ends))
            self._batches = batches(self.path, self._columns, BATCH, groups, MEMBER_LIMIT)
            self._start, self._batch = first, next(self._batches)
        while row >= self._start + len(self._batch):
            start, self._batch = self._start + len(self._batch), ()  # which may be the last that can be read
            self._start, self._batch = start, next(self._batches)


def parquet_splits(data: Path) -> dict[str, list[Path]]:
    """Parquet files of a data set by split, as Hugging Face lays them out.

    ``data/test-00000-of-00002.parquet`` (with a hash behind in older ones), ``CONFIG/test/0000.parquet``, or either
    without its folder. Raises `WrongUse` where a part is missing, or two configurations may have the same rows.
    """
    patterns = ("*.parquet", "data/*.parquet", "*/*/*.parquet")
    paths = next((paths for pattern in patterns if (paths := sorted(data.glob(pattern)))), [])
    splits: dict[str, list[Path]] = {}
    for path in paths:
        part = PART.fullmatch(path.stem)
        of_name = path.parent.name if path.stem.isdigit() else path.stem.partition("-")[0]
        splits.setdefault(part["split"] if part else of_name, []).append(path)
    for split, parts in splits.items():
        if parts[0].parent != parts[-1].parent:
            raise WrongUse(f"{parts[0]}: {parts[-1]} is of the split {split} too; keep one configuration's folder")
        part = PART.fullmatch(parts[0].stem)
        if part and len(parts) != int(part["parts"]):
            there = f"{len(parts)} of the {int(part['parts'])} parts of {split} are there"
            raise WrongUse(f"{parts[0].parent}: {there}; fetch all")
    return splits


@contextmanager
def _naming(path: Path, what: str) -> Iterator[None]:
    """Names file and place in what pyarrow raises for a damaged file; much of it is an OSError without a number."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise WrongUse(f"{path}: {what} cannot be read ({error}); {REFETCH}") from error
