"""Parquet files of others, in which a value is stored once and repeated by its number: read a few rows at a time.

A few hundred bytes may be a value of 1 MiB in each of 65,536 rows.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LONGEST_VALUE = 1 << 20  # bytes of a text, as of a line of JSON
ROWS = 128  # which may all hold the longest value
BUFFER = 1 << 20  # bytes that are read ahead of a column; without it a whole row group would be


def batches(
    path: Path,
    columns: Sequence[str],
    rows: int = ROWS,
    groups: Sequence[int] | None = None,
    longest: int = LONGEST_VALUE,
) -> Iterator[pa.RecordBatch]:
    """The rows of some columns, at most ``rows`` at a time. A column may be a field of one: ``image.bytes``.

    Raises:
        pa.ArrowException: the file is damaged, or a value has more than ``longest`` bytes. OSError: it cannot be read.
    """
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
        chosen = [*(range(file.num_row_groups) if groups is None else groups)]
        for batch in file.iter_batches(rows, row_groups=chosen, columns=list(columns), use_threads=False):
            for name, array in zip(batch.schema.names, batch.columns, strict=True):
                _check_values(array, name, longest)
            yield batch


def _check_values(array: pa.Array, name: str, longest: int) -> None:
    """Raise `pa.ArrowInvalid` where a text, in a list or a field too, has more than ``longest`` bytes."""
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        _check_values(array.flatten(), name, longest)
    elif pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            _check_values(array.field(place), name, longest)
    elif any(of(array.type) for of in _TEXTS) and (most := pc.max(pc.binary_length(array)).as_py() or 0) > longest:
        raise pa.ArrowInvalid(f"the column {name!r} holds a value of {most:,} bytes, at most {longest:,} are read")


_TEXTS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
