"""Changes of tables, databases, archives and pictures that only writing them again can make."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.trials.changed_bytes import BYTES, LINES, ODD
from tests.trials.changed_values import change_value, json_value

TYPES = (
    *(pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.bool_()),
    *(pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal128(38, 3)),
    *(pa.timestamp("ns"), pa.date32()),
)
LAYOUTS: tuple[dict[str, Any], ...] = (
    *({"row_group_size": 1}, {"compression": "gzip"}, {"version": "1.0"}),
    *({"data_page_version": "2.0"}, {"use_dictionary": False}),
)


def parquet_table(data: bytes, random: Random) -> bytes:
    """A column has another type, a strange cell, another name, or other rows; or the file another layout."""
    table = pq.read_table(io.BytesIO(data))
    at = random.randrange(table.num_columns)
    name, column, rows = table.column_names[at], table.column(at), [*range(len(table))]

    def put(cells: Any) -> pa.Table:
        return table.set_column(at, name, cells)

    changes: tuple[tuple[int, Callable[[], pa.Table]], ...] = (
        (2, lambda: put(_cast(column, random.choice(TYPES)))),
        (3, lambda: put(_with_odd_cell(column, random))),
        (1, lambda: put(pa.nulls(len(table), column.type))),
        (1, lambda: put(pa.array([[cell] for cell in column.to_pylist()]))),
        (1, lambda: put(pa.array([{"x": cell} for cell in column.to_pylist()]))),
        (1, lambda: table.remove_column(at)),
        (1, lambda: table.rename_columns([f"{old}x" if old == name else old for old in table.column_names])),
        (1, lambda: table.append_column(name, column)),
        (1, lambda: table.take(random.choice(([], [0], rows * 2, rows[::-1], [0] * 500)))),
        (1, lambda: table.replace_schema_metadata(_metadata(table, random))),
        (1, lambda: table),
    )
    (change,) = random.choices([change for _, change in changes], [weight for weight, _ in changes])
    changed, stream = change(), io.BytesIO()
    layout = random.choice(LAYOUTS) if changed is table or random.random() < 0.1 else {}
    pq.write_table(changed, stream, **layout)
    return stream.getvalue()


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    try:
        return column.cast(kind, safe=False)
    except (pa.ArrowException, NotImplementedError):
        return pa.nulls(len(column), kind)


def _with_odd_cell(column: pa.ChunkedArray, random: Random) -> pa.Array:
    cells = column.to_pylist()
    row = random.randrange(max(1, len(cells)))
    cells[row : row + 1] = [change_value(cell, random) for cell in cells[row : row + 1]]
    try:
        return pa.array(cells, column.type, from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([None if cell is None else str(cell) for cell in cells])


def _metadata(table: pa.Table, random: Random) -> dict[bytes, bytes]:
    metadata = dict(table.schema.metadata or {b"twinset": b"{}", b"pandas": b"{}"})
    key = random.choice([*metadata])
    try:
        return {**metadata, key: json_value(metadata[key], random)}
    except ValueError:
        return {**metadata, key: b"\xff"}


def database(data: bytes, random: Random) -> bytes:
    """A statement changes cells, columns, tables or settings of SQLite."""
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
        path = Path(file.name)
        path.write_bytes(data)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            asked = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            table = random.choice([row[0] for row in connection.execute(asked)])
            column = random.choice([row[1] for row in connection.execute(f"PRAGMA table_info({table})")])
            cell = f"UPDATE OR IGNORE {table} SET {column} = ?"
            statement = random.choice((
                cell, f"{cell} WHERE rowid = 1", f"{cell} WHERE rowid = 1", f"DROP TABLE {table}",
                f"ALTER TABLE {table} RENAME COLUMN {column} TO odd", f"ALTER TABLE {table} RENAME TO odd",
                f"ALTER TABLE {table} ADD COLUMN odd", f"DELETE FROM {table}", "PRAGMA user_version = 99",
                f"INSERT INTO {table} SELECT * FROM {table}", "PRAGMA application_id = 7", "PRAGMA journal_mode = WAL",
            ))  # fmt: skip
            values = [
                value
                for value in ODD
                if isinstance(value, str | bytes | float | None) or (isinstance(value, int) and abs(value) < 2**63)
            ]
            connection.execute(statement, [random.choice(values)] if "?" in statement else [])
        return path.read_bytes()


def tar_member(data: bytes, random: Random) -> bytes:
    """A member is another, or has another name, type or place."""
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            members.append((member, stream.read() if stream else b""))
    at = random.randrange(len(members))
    member, content = members[at]
    what = random.choice(("name", "removed", "doubled", "order", "bytes", "type", "value", "value"))
    if what == "name":
        names = ("../x", "/x", "", "a" * 300, "x", f"{member.name}x", member.name.upper(), "é\ud800", "a/b/c.json", ".")
        member.name, member.pax_headers = random.choice(names), {}
    elif what == "removed":
        del members[at]
    elif what == "doubled":
        members.insert(random.randrange(len(members)), members[at])
    elif what == "order":
        random.shuffle(members)
    elif what == "type":
        member.type = random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE))
        member.linkname = "/etc/passwd"
    else:
        forms = {".json": (json_value,), ".txt": LINES, ".jpg": (other_picture,)} if what == "value" else {}
        change = random.choice(forms.get(Path(member.name).suffix, BYTES))
        members[at] = (member, change(content, random))
    form = random.choice((tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as tar:
        for member, content in members:
            member.size = len(content) if member.isfile() else 0
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


CHUNKS = (
    *((b"tEXt", b"a\0" + b"x" * 5000), (b"eXIf", b"MM\0*\0\0\0\x08" + b"\xff" * 40), (b"iCCP", b"x\0\0" + b"\0" * 9)),
    *((b"tRNS", b"\0"), (b"PLTE", b"\0\0"), (b"acTL", b"\0\0\0\x05\0\0\0\0")),
)


def png_chunk(data: bytes, random: Random) -> bytes:
    """A chunk with other bytes and a right checksum, or one more, or one less."""
    at, chunks = 8, list[tuple[bytes, bytes]]()
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    place = random.randrange(len(chunks))
    name, body = chunks[place]
    changed = bytearray(body or b"\0")
    changed[random.randrange(min(len(changed), 16))] = random.choice((0, 1, 3, 255, 128))
    another = (name, bytes(changed))
    chunks[place : place + 1] = random.choice(
        ([another], [another], [], 2 * [(name, body)], [(name, body), random.choice(CHUNKS)])
    )
    parts = (
        len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big") for name, body in chunks
    )
    return data[:8] + b"".join(parts)


def other_picture(_: bytes, random: Random) -> bytes:
    """A whole picture, of another mode, size or format than its name says."""
    mode = random.choice(("1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F", "YCbCr", "RGB"))
    form = random.choice(("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "ICO", "PPM", "JPEG2000"))
    exif, out = Image.Exif(), io.BytesIO()
    exif[0x0112] = random.choice((1, 3, 6, 8, 99, 0))
    picture = Image.new(mode, random.choice(((1, 1), (3, 500), (500, 3), (33, 17))))
    try:
        picture.save(out, form, exif=exif)
    except (OSError, KeyError):
        picture.convert("RGB").save(out, form)
    return out.getvalue()
