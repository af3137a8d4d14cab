"""Parquet files of others, of which a few hundred bytes may expand to any size: looked at before they are expanded.

A value is stored once and repeated by its number, a page may be a single byte repeated, a row a list without end. So
the headers of all pages are read first: no value is larger than a page, which says how many rows memory has room for.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LONGEST_VALUE = 1 << 20  # bytes of a text, as of a line of JSON
MOST_BYTES = 128 << 20  # of a column's rows that are expanded together
MOST_PAGE = 128 << 20  # bytes, expanded; most writers make pages of 1 MiB, some of 100
MOST_PREFIXED = 2 << 20  # bytes of a page whose values are the one before with another end, and so expand again
MOST_LISTED = 1 << 26  # values of lists in a row group, which one row may hold
ROWS = 1 << 16
BUFFER = 1 << 20  # bytes that are read ahead of a column; without it a whole row group would be
_DELTA_BYTE_ARRAY = 7  # an encoding


def batches(
    path: Path,
    columns: Sequence[str],
    rows: int = ROWS,
    groups: Sequence[int] | None = None,
    longest: int = LONGEST_VALUE,
) -> Iterator[pa.RecordBatch]:
    """The rows of some columns, at most ``rows`` at a time. A column may be a field of one: ``image.bytes``.

    Args:
        longest: bytes of a value.

    Raises:
        pa.ArrowException: the file is damaged, or holds more than is read. OSError: it cannot be read.
    """
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
        leaves = [file.schema.column(place) for place in range(len(file.schema))]
        chosen = [*(range(file.num_row_groups) if groups is None else groups)]
        listed, largest = [], 1
        for place, leaf in enumerate(leaves):
            if any(f"{leaf.path}.".startswith(f"{column}.") for column in columns):
                pages = [_pages(path, file, group, place, max(MOST_PAGE, 4 * longest)) for group in chosen]
                if leaf.physical_type == "BYTE_ARRAY":
                    page, values = (max(of, default=0) for of in zip(*pages, strict=True)) if pages else (0, 0)
                    largest = max(largest, page)
                    # One row may hold all of them: numbered they take four bytes each.
                    listed += [leaf.path] if page * values > 4 * MOST_BYTES else []
        plain = file.schema_arrow
    options: Any = {"pre_buffer": False, "buffer_size": BUFFER, "read_dictionary": listed}
    size = max(1, min(rows, MOST_BYTES // largest))
    with pq.ParquetFile(path, **options) as file:
        for batch in file.iter_batches(size, row_groups=chosen, columns=list(columns), use_threads=False):
            for part in _parts(batch, longest) if listed else (batch,):
                arrays = [part.column(place) for place in range(part.num_columns)]
                for name, array in zip(part.schema.names, arrays, strict=True):
                    _size(array, name, longest)
                if listed:
                    types = [plain.field(name).type for name in part.schema.names]
                    arrays = list(map(_expanded, arrays, types))
                yield pa.RecordBatch.from_arrays(arrays, names=part.schema.names)


def _parts(batch: pa.RecordBatch, longest: int) -> Iterator[pa.RecordBatch]:
    """The rows of a batch with texts that are still numbered, no more at a time than memory has room for."""
    size = sum(_size(batch.column(place), name, longest) for place, name in enumerate(batch.schema.names))
    if size <= MOST_BYTES:
        yield batch
    elif batch.num_rows < 2:
        raise pa.ArrowInvalid(f"a row of {size:,} bytes, expanded")
    else:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half), longest)
        yield from _parts(batch.slice(half), longest)


def _size(array: pa.Array, name: str, longest: int) -> int:
    """Bytes of an array with its texts expanded; raises for one of more than ``longest``."""
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _size(array.flatten(), name, longest)
    if pa.types.is_struct(array.type):
        return sum(_size(array.field(place), name, longest) for place in range(array.type.num_fields))
    numbered = pa.types.is_dictionary(array.type)
    values = array.dictionary if numbered else array
    if not any(of(values.type) for of in _TEXTS):
        return int(array.nbytes)
    lengths = pc.binary_length(values)
    lengths = lengths.take(array.indices) if numbered else lengths
    if (most := pc.max(lengths).as_py() or 0) > longest:
        raise pa.ArrowInvalid(f"the column {name!r} holds a value of {most:,} bytes, at most {longest:,} are read")
    return int(pc.sum(lengths).as_py() or 0) + 8 * len(array)


_TEXTS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)


def _expanded(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array whose texts are no longer numbered, of the fields that it has."""
    return array if pa.types.is_struct(array.type) or array.type == type_ else array.cast(type_)


def _pages(path: Path, file: pq.ParquetFile, group: int, place: int, most: int) -> tuple[int, int]:
    """Of a column in a row group: bytes of its largest page, expanded, and values of its lists.

    Raises `pa.ArrowInvalid` where they are too many. What the footer says need not be so.
    """
    chunk = file.metadata.row_group(group).column(place)
    lists = file.schema.column(place).max_repetition_level > 0
    starts = [at for at in (chunk.data_page_offset, chunk.dictionary_page_offset) if at is not None and at > 0]
    at = min(starts, default=0)
    end, largest, listed = at + chunk.total_compressed_size, 0, 0
    where = f"the column {chunk.path_in_schema!r}"
    with path.open("rb") as stream:
        while at < end:
            header, length = _header(stream, at)
            own, newer = _numbers(header), _numbers(header.get(8))
            expanded, stored = own.get(2, -1), own.get(3, -1)
            if min(expanded, stored) < 0:
                raise pa.ArrowInvalid(f"{where} has a damaged page at byte {at}")
            details = newer or _numbers(header.get(5))
            encoding = details.get(4 if newer else 2)
            if expanded > (MOST_PREFIXED if encoding == _DELTA_BYTE_ARRAY else most):
                raise pa.ArrowInvalid(f"{where} has a page of {expanded:,} bytes, expanded")
            largest = max(largest, expanded)
            listed += details.get(1, 0) if lists else 0
            if listed > MOST_LISTED:
                raise pa.ArrowInvalid(f"{where} holds lists of {listed:,} values")
            at += length + stored
    return largest, listed


def _numbers(fields: Any) -> dict[int, int]:
    """The numbers among the fields of a struct; none of what is no struct."""
    return {number: one for number, one in fields.items() if isinstance(one, int)} if isinstance(fields, dict) else {}


def _header(stream: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """The header of a page by the numbers of its fields, and its length in bytes."""
    size = 256
    while True:
        stream.seek(at)
        held = stream.read(size)
        try:
            return _struct(held, 0, 0)
        except IndexError:
            if len(held) < size or size >= 1 << 24:
                raise pa.ArrowInvalid(f"a damaged page at byte {at}") from None
        size *= 16


def _struct(held: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Fields of a struct of Thrift's compact protocol, and the place behind it; IndexError where it goes on."""
    fields: dict[int, Any] = {}
    number = 0
    while kind := held[at]:
        at += 1
        if kind >> 4:
            number += kind >> 4
        else:
            number, at = _integer(held, at)
        fields[number], at = _value(held, at, kind & 15, depth)
    return fields, at + 1


def _value(held: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # true and false
        return kind == 1, at
    if kind == 3:
        return held[at], at + 1
    if kind in (4, 5, 6):
        return _integer(held, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _varint(held, at)
        return None, at + length
    if kind == 12 and depth < 8:
        return _struct(held, at, depth + 1)
    raise pa.ArrowInvalid(f"a page's header has a field of kind {kind}")


def _integer(held: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(held, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(held: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = held[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise pa.ArrowInvalid("a page's header has a number without end")
