"""Changes of tables, databases, archives and pictures that only writing them again can make."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
import zlib
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.trials.changed_bytes import BYTES, LINES, ODD, clear
from tests.trials.changed_values import RAW_JSON, as_json, change_value, json_value

# Tables, databases and archives.

TYPES = (
    *(
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.large_string(),
        pa.binary(),
        pa.null(),
        pa.int8(),
        pa.float16(),
    ),
    *(pa.timestamp("ns"), pa.date32(), pa.dictionary(pa.int32(), pa.string()), pa.decimal128(38, 3), pa.uint64()),
)


def parquet_table(path: Path, random: Random) -> str:
    table = pq.read_table(path)
    at = random.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    what = random.choice(
        (
            "type",
            "type",
            "cell",
            "cell",
            "cell",
            "nulls",
            "dropped",
            "renamed",
            "doubled",
            "wrapped",
            "rows",
            "about",
            "shape",
        )
    )
    options: dict[str, Any] = {}
    if what == "type":
        kind = random.choice(TYPES)
        try:
            new = column.cast(kind, safe=False)
        except (pa.ArrowException, NotImplementedError):
            new = pa.nulls(len(table), kind)
        table, what = table.set_column(at, name, new), f"is {kind}"
    elif what == "cell":
        cells, row = column.to_pylist(), random.randrange(max(1, len(table)))
        before = cells[row] if cells else None
        cells[row : row + 1] = [change_value(before, random)[0]]
        try:
            new = pa.array(cells, column.type, from_pandas=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            new = pa.array([None if one is None else str(one) for one in cells])
        table, what = table.set_column(at, name, new), f"row {row} is {str(cells[row])[:60]!r}" if cells else "no rows"
    elif what == "nulls":
        table = table.set_column(at, name, pa.nulls(len(table), column.type))
    elif what == "dropped":
        table = table.remove_column(at)
    elif what == "renamed":
        table = table.rename_columns([f"{one}x" if one == name else one for one in table.column_names])
    elif what == "doubled":
        table = table.append_column(name, column)
    elif what == "wrapped":
        cells = column.to_pylist()
        new = random.choice((pa.array([[one] for one in cells]), pa.array([{"x": one} for one in cells])))
        table = table.set_column(at, name, new)
    elif what == "rows":
        order = random.choice(([], [0], [*range(len(table))] * 2, [*range(len(table))][::-1], [0] * 500))
        table, what = table.take(order), f"{len(order)} rows"
    elif what == "about":
        metadata = dict(table.schema.metadata or {b"twinset": b"{}", b"pandas": b"{}"})
        key = random.choice([*metadata])
        try:
            changed, what = change_value(json.loads(metadata[key]), random, RAW_JSON)
            metadata[key] = as_json(changed).encode("utf-8", "surrogatepass")
        except ValueError:
            metadata[key] = b"\xff"
        table = table.replace_schema_metadata(metadata)
    else:
        options = random.choice(
            (
                {"row_group_size": 1},
                {"compression": "gzip"},
                {"version": "1.0"},
                {"data_page_version": "2.0"},
                {"use_dictionary": False},
            )
        )
    pq.write_table(table, path, **options)
    return f"column {name}: {what} {options or ''}"


def database(path: Path, random: Random) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
        table = random.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column = random.choice(columns)
        value = random.choice(
            [
                one
                for one in ODD
                if isinstance(one, str | bytes | float | int | None) and (not isinstance(one, int) or abs(one) < 2**63)
            ]
        )
        statement, given = random.choice((
            (f"UPDATE OR IGNORE {table} SET {column} = ?", [value]),
            (f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = 1", [value]),
            (f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = 1", [value]),
            (f"DROP TABLE {table}", []), (f"ALTER TABLE {table} RENAME COLUMN {column} TO odd", []),
            (f"ALTER TABLE {table} RENAME TO odd", []), (f"DELETE FROM {table}", []), ("PRAGMA user_version = 99", []),
            (f"INSERT INTO {table} SELECT * FROM {table}", []), ("PRAGMA application_id = 7", []),
            ("PRAGMA journal_mode = WAL", []), (f"ALTER TABLE {table} ADD COLUMN odd", []),
        ))  # fmt: skip
        connection.execute(statement, given)
    return f"{statement} {str(given)[:60]}"


def tar_member(path: Path, random: Random) -> str:
    members: list[tuple[tarfile.TarInfo, bytes]] = []
    with tarfile.open(path) as tar:
        for member in tar:
            found = tar.extractfile(member)
            members.append((member, found.read() if found else b""))
    at = random.randrange(len(members))
    member, data = members[at]
    what = random.choice(("name", "removed", "doubled", "order", "bytes", "type", "value", "value"))
    if what == "name":
        member.name = random.choice(
            ("../x", "/x", "", "a" * 300, "x", member.name + "x", member.name.upper(), "é\ud800", "a/b/c.json", ".")
        )
        member.pax_headers = {}
    elif what == "removed":
        del members[at]
    elif what == "doubled":
        members.insert(random.randrange(len(members)), members[at])
    elif what == "order":
        random.shuffle(members)
    elif what == "type":
        member.type, member.linkname = (
            random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE)),
            "/etc/passwd",
        )
    else:
        inner = path.with_name(f"member{Path(member.name).suffix}")
        inner.write_bytes(data)
        form = (
            {".json": (json_value,), ".txt": LINES, ".jpg": (other_picture,)}.get(inner.suffix)
            if what == "value"
            else None
        )
        try:
            what = random.choice(form or BYTES)(inner, random)
            members[at] = (member, inner.read_bytes() if inner.is_file() else b"")
        finally:
            clear(inner)
    with tarfile.open(
        path,
        "w",
        format=random.choice((tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)),
        errors="surrogateescape",
    ) as tar:
        for member, data in members:
            member.size = len(data) if member.isfile() else 0
            tar.addfile(member, io.BytesIO(data))
    return f"{member.name[:60]!r}: {what}"


def png_chunk(path: Path, random: Random) -> str:
    """A chunk with other bytes and a right checksum, or one more, or one less."""
    data, at, chunks = path.read_bytes(), 8, list[tuple[bytes, bytes]]()
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    place = random.randrange(len(chunks))
    name, body = chunks[place]
    what = random.choice(("bytes", "bytes", "removed", "doubled", "text"))
    if what == "bytes":
        changed = bytearray(body or b"\0")
        changed[random.randrange(min(len(changed), 16))] = random.choice((0, 1, 3, 255, 128))
        chunks[place] = (name, bytes(changed))
    elif what == "removed":
        del chunks[place]
    elif what == "doubled":
        chunks.insert(place, chunks[place])
    else:
        chunks.insert(
            1,
            random.choice(
                (
                    (b"tEXt", b"a\0" + b"x" * 5000),
                    (b"eXIf", b"MM\0*\0\0\0\x08" + b"\xff" * 40),
                    (b"iCCP", b"x\0\0" + b"\0" * 9),
                    (b"tRNS", b"\0"),
                    (b"PLTE", b"\0\0"),
                    (b"acTL", b"\0\0\0\x05\0\0\0\0"),
                )
            ),
        )
    pieces = [
        len(inner).to_bytes(4, "big") + one + inner + zlib.crc32(one + inner).to_bytes(4, "big")
        for one, inner in chunks
    ]
    path.write_bytes(data[:8] + b"".join(pieces))
    return f"chunk {name!r}: {what}"


def other_picture(path: Path, random: Random) -> str:
    """A whole picture, of another mode, size or format than its name says."""
    from PIL import Image

    mode = random.choice(("1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F", "YCbCr", "RGB"))
    size = random.choice(((1, 1), (3, 500), (500, 3), (33, 17)))
    form = random.choice(("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "ICO", "PPM", "JPEG2000"))
    exif = Image.Exif()
    exif[0x0112] = random.choice((1, 3, 6, 8, 99, 0))
    made = Image.new(mode, size)
    try:
        made.save(path, form, exif=exif)
    except (OSError, KeyError):
        made.convert("RGB").save(path, form)
    return f"a picture {mode} {size} as {form}"
