"""Files as tests of captions and images write them, and what a file or folder of captions is read as."""

import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from twinset.generators.annotation_files import Skipped
from twinset.generators.captions.tables import Caption, caption_source

Captions = list[tuple[str, ...]]


def read(path: Path) -> tuple[str, Captions, str]:
    """The kind; id, image id, text, file, and split and terms where stated; place and reason of what was left out."""
    source = caption_source(path)
    records = list(source.read())
    captions = [
        (c.caption_id, c.image_id, c.caption, c.image, *filter(None, (c.split, *c.terms)))
        for c in records
        if isinstance(c, Caption)
    ]
    skipped = [f"{record.place}: {record.reason}" for record in records if isinstance(record, Skipped)]
    return source.kind, captions, "; ".join(skipped)


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The one file that was written, or the folder of several."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder / next(iter(files)) if len(files) == 1 and not next(iter(files)).endswith(".tar") else folder


def saved(path: Path, content: Any) -> Path:
    """A text file: text as it is, anything else as JSON."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def picture(colour: tuple[int, int, int], size: tuple[int, int] = (24, 16), form: str = "PNG") -> bytes:
    """The file of an image of one colour."""
    stream = io.BytesIO()
    Image.new("RGB", size, colour).save(stream, form)
    return stream.getvalue()


def tar_of(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files.items() if isinstance(files, Mapping) else files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def parquet_of(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()
