"""Parquet files with encoded images, as Hugging Face stores data sets: rows without images, images one by one."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import Picture
from twinset.shards.storage.parquet_reader import batches
from twinset.shards.storage.tar_reader import MEMBER_LIMIT

BATCH = 16  # rows whose images are held
PART = re.compile(r"(?P<split>.+)-(?P<number>\d{5})-of-(?P<parts>\d{5})(-[0-9a-f]+)?")
REFETCH = "fetch the file again"


class ParquetRows:
    """One file: its rows, and the images of a row when they are asked for.

    Images are read in batches from where the last one was, so that asking in order reads the file once. A batch is held
    and the page that it lies in: at most a row group, for which Hugging Face takes 100 rows of images.
    """

    def __init__(self, path: Path, images: Sequence[str], words: Sequence[str]) -> None:
        """
        Args:
            path: of the file.
            images: columns of ``{bytes, path}``.
            words: columns of `rows`.

        Raises:
            WrongUse: it is not Parquet, or lacks a column.
        """
        self.path, self._images, self._words = path, list(images), list(words)
        self._lock = Lock()
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._batch: pa.RecordBatch | None = None
        self._start = 0  # row that the batch begins with
        with _telling(path, "its footer"):
            file = pq.ParquetFile(path, pre_buffer=False)
            groups = (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))
            self._ends = list(accumulate(one.num_rows for one in groups))  # row after the last of each
            names = file.schema_arrow.names
            if missing := [name for name in (*images, *words) if name not in names]:
                raise WrongUse(f"{path}: no column {missing[0]!r} (it has {', '.join(names)[:200]}); {REFETCH}")
            if twice := [name for name in (*images, *words) if names.count(name) > 1]:
                raise WrongUse(f"{path}: two columns are called {twice[0]!r}; {REFETCH}")
            if nested := [name for name in words if pa.types.is_nested(file.schema_arrow.field(name).type)]:
                raise WrongUse(f"{path}: the column {nested[0]!r} holds no plain values; {REFETCH}")
            for name in images:
                type_ = file.schema_arrow.field(name).type
                if not pa.types.is_struct(type_) or type_.get_field_index("bytes") < 0:
                    raise WrongUse(f"{path}: the column {name!r} holds no images ({type_}); {REFETCH}")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The words of each row, in order."""
        with _telling(self.path, "its text"):
            for batch in batches(self.path, self._words):
                yield from batch.to_pylist()

    def digests(self, column: str) -> Iterator[str]:
        """sha256 of the image of each row in a column, in order; "" of a row without one."""
        with _telling(self.path, column):
            for batch in batches(self.path, [f"{column}.bytes"], BATCH, longest=MEMBER_LIMIT):
                for content in batch.column(0).field("bytes"):
                    yield hashlib.sha256(content.as_buffer()).hexdigest() if content.is_valid else ""

    def picture(self, row: int, column: str) -> Picture:
        """The image of a row, which is read when the picture is."""
        return Picture(f"{self.path} row {row} {column}", partial(self._read, row, column))

    def _read(self, row: int, column: str) -> bytes:
        where = f"row {row} {column}"
        with self._lock, _telling(self.path, where):
            self._seek(row)
            assert self._batch is not None
            content = self._batch.column(column).field("bytes")[row - self._start].as_py()
        if not content:
            raise WrongUse(f"{self.path}: {where} holds no image; {REFETCH}")
        return bytes(content)

    def _seek(self, row: int) -> None:
        """Have the batch that holds a row: the next one most of the time, else from the start of its row group."""
        group = next(number for number, end in enumerate(self._ends) if row < end)
        before = self._ends[group - 1] if group else 0
        if self._batch is None or row < self._start or before > self._start + len(self._batch):
            self._batches, self._batch, self._start = self._of_groups(group), None, before
        while self._batch is None or row >= self._start + len(self._batch):
            self._start += len(self._batch) if self._batch is not None else 0
            self._batch = None
            self._batch = next(self._batches)

    def _of_groups(self, first: int) -> Iterator[pa.RecordBatch]:
        columns = [f"{name}.bytes" for name in self._images]
        for group in range(first, len(self._ends)):
            yield from batches(self.path, columns, BATCH, [group], MEMBER_LIMIT)


def parquet_splits(data: Path) -> dict[str, list[Path]]:
    """Parquet files of a data set by split, as Hugging Face lays them out.

    ``data/test-00000-of-00002.parquet`` (with a hash behind in older ones), ``CONFIG/test/0000.parquet``, or either
    without its folder. Raises `WrongUse` when a part is missing: the benchmark would quietly be smaller.
    """
    found: dict[str, list[Path]] = {}
    for pattern in ("*.parquet", "data/*.parquet", "*/*/*.parquet"):
        for path in sorted(data.glob(pattern)):
            named = PART.fullmatch(path.stem)
            found.setdefault(named["split"] if named else _split_of(path), []).append(path)
        if found:
            break
    for split, paths in found.items():
        named = PART.fullmatch(paths[0].stem)
        if named and len(paths) != int(named["parts"]):
            raise WrongUse(
                f"{paths[0].parent}: {len(paths)} of the {int(named['parts'])} parts of {split} are there; fetch all"
            )
    return found


def _split_of(path: Path) -> str:
    """Of ``test/0000.parquet`` the folder's name, of ``test.parquet`` the file's."""
    return path.parent.name if path.stem.isdigit() else path.stem.partition("-")[0]


@contextmanager
def _telling(path: Path, what: str) -> Iterator[None]:
    """Names file and place in what pyarrow raises for a damaged file; much of it is an OSError without a number."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise WrongUse(f"{path}: {what} cannot be read ({error}); {REFETCH}") from error
