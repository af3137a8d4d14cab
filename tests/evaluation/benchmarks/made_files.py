"""Files that tiny copies of released layouts are made of."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


@dataclass(frozen=True)
class Case:
    """A tiny copy of a benchmark's layout. subsets: examples by subset, in order. left_out: records by reason.

    write: into a folder, with a word of a caption. images: lie ``below`` in any folders, or in ``named`` ones;
    or they are their ``own`` annotation, or lie ``inside`` it. targets: whether those of queries are known.
    """

    write: Callable[..., None]
    subsets: Mapping[str, int]
    left_out: Mapping[str, int] = field(default_factory=dict)
    images: Literal["below", "named", "own", "inside"] = "below"
    targets: bool = True


def picture(number: int, format: str = "JPEG") -> bytes:
    """A picture whose first pixel tells its number in every format: red."""
    stream = io.BytesIO()
    Image.new("RGB", (24, 16), (10 * number % 256, 100, 30)).save(stream, format, quality=95)
    return stream.getvalue()


def put(path: Path, content: bytes | str | object) -> Path:
    """Write a file, of anything but bytes and text as JSON, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def parquet(path: Path, rows: list[dict[str, Any]], images: tuple[str, ...], row_group_size: int = 40) -> None:
    """As `datasets` writes it: images are structs of bytes and path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {name: struct if name in images else (pa.int32() if name == "id" else pa.string()) for name in rows[0]}
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(types.items()))), path, row_group_size=row_group_size)
