"""Reading Parquet in the calling thread alone.

pyarrow's threads sometimes abort the interpreter when it ends ("terminate called without an active exception", exit
code 134, in 9 of 120 runs of pyarrow 26 after `pq.read_table`), which turns a finished shard into a crashed child
process. Here no reader starts one: `use_threads` decodes in one pool, and `pre_buffer` reads ahead in another.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

MANY_TABLES = 1000


def read_parquet(
    stream: BinaryIO, columns: Sequence[str] | None = None, row_group: int | None = None, checksums: bool = False
) -> pa.Table:
    """All columns or those named, of the whole file or of one row group.

    checksums: compare those of the pages, where the file has some.
    Raises `pyarrow.ArrowInvalid` for what is not Parquet, or damaged.
    """
    names = None if columns is None else list(columns)
    with _broken_told():
        file = pq.ParquetFile(stream, pre_buffer=False, page_checksum_verification=checksums)
        if row_group is None:
            return file.read(columns=names, use_threads=False)
        return file.read_row_group(row_group, columns=names, use_threads=False)


def parquet_columns(stream: BinaryIO) -> list[str]:
    """Names of the columns; raises as `read_parquet`."""
    with _broken_told():
        return list(pq.ParquetFile(stream, pre_buffer=False).schema_arrow.names)


def parquet_rows(stream: BinaryIO, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file that need not fit into memory, as dicts of the named columns; raises as `read_parquet`."""
    with _broken_told():
        file = pq.ParquetFile(stream, pre_buffer=False)
        for batch in file.iter_batches(columns=list(columns), use_threads=False):
            yield from batch.to_pylist()


@contextmanager
def _broken_told() -> Iterator[None]:
    """Much of what pyarrow finds wrong in a file it raises as OSError, as if the disk failed, but without a number."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise pa.ArrowInvalid(str(error).strip()) from error


def compact(tables: list[pa.Table]) -> None:
    """Join tables in place once there are many: the memory of a small one is several times that of its rows."""
    if len(tables) >= MANY_TABLES:
        tables[:] = [pa.concat_tables(tables).combine_chunks()]
