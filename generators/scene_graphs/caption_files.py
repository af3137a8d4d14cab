"""Readers of caption files: CC3M's TSV, Flickr's token files, COCO's JSON, JSON lines and Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from generators.annotation_files import Skipped, lines, read_json
from generators.annotation_files import read_json_lines as read_values
from generators.scene_graphs.captions import (
    CAPTION,
    CAPTION_ID,
    IMAGE,
    IMAGE_ID,
    Caption,
    Read,
    checked,
    from_fields,
)
from manifests.errors import WrongUse

FLICKR_ID = re.compile(r"(?P<image>.+)#\d+")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")


def read_tsv(path: Path) -> Iterator[Read]:
    """Conceptual Captions: ``caption<TAB>url`` a line, in which the URL is the image's id and the line's number the
    caption's; or columns named by a first line that names a caption (`generators.scene_graphs.captions`)."""
    columns: list[str] | None = None
    for number, line in lines(path):
        place, default_id = f"line {number}", f"{number:09d}"
        if isinstance(line, Skipped):
            yield line
            continue
        fields = line.split("\t")
        if number == 1 and len(fields) > 1 and set(CAPTION) & {field.strip().lower() for field in fields}:
            columns = [field.strip().lower() for field in fields]
        elif len(fields) != len(columns or ("caption", "url")):
            yield Skipped(place, "wrong-columns")
        elif columns is not None:
            yield from_fields(dict(zip(columns, fields, strict=True)), place, default_id)
        elif not URL.fullmatch(url := fields[1].strip()):
            yield Skipped(place, "no-url")
        else:
            yield checked(Caption(default_id, url, fields[0], url, place))


def read_flickr_tokens(path: Path) -> Iterator[Read]:
    """Flickr8k and Flickr30k: ``IMAGE#k<TAB>caption`` a line; what is before the tab is the caption's id."""
    for number, line in lines(path):
        place = f"line {number}"
        if isinstance(line, Skipped):
            yield line
            continue
        caption_id, tab, caption = line.partition("\t")
        if not tab:
            yield Skipped(place, "no-tab")
        elif not (found := FLICKR_ID.fullmatch(caption_id)):
            yield Skipped(place, "no-image-id")
        else:
            yield checked(Caption(caption_id, found["image"], caption, found["image"], place))


def read_json_lines(path: Path) -> Iterator[Read]:
    """A JSON object a line, with the fields of `generators.scene_graphs.captions`."""
    for number, value in read_values(path):
        place = f"line {number}"
        if isinstance(value, Skipped):
            yield value
        else:
            yield from_fields(value, place, f"{number:09d}") if isinstance(value, dict) else Skipped(place, "no-object")


def read_coco(path: Path) -> Iterator[Read]:
    """COCO captions: ``{"images": [{id, file_name}], "annotations": [{id, image_id, caption}]}``.

    One JSON value, so that the whole file is held; the largest of COCO's has 91 MB.
    Raises `WrongUse` when it has another structure.
    """
    content: Any = read_json(path)
    try:
        files = {int(image["id"]): str(image["file_name"]) for image in content["images"]}
        annotations = content["annotations"]
        if not isinstance(annotations, list):
            raise TypeError("annotations is no list")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise WrongUse(
            f"{path}: not COCO's captions ({type(error).__name__}: {error}), which have lists of images (id, "
            "file_name) and annotations (id, image_id, caption); write another list as JSON lines, an object a line"
        ) from error
    for number, annotation in enumerate(annotations, 1):
        place = f"annotation {number}"
        if not isinstance(annotation, dict) or not isinstance(annotation.get("id"), int):
            yield Skipped(place, "no-caption-id")
        elif not isinstance(image := annotation.get("image_id"), int) or image not in files:
            yield Skipped(place, "unknown-image")
        else:
            yield from_fields({**annotation, "image": files[image]}, place, str(annotation["id"]))


def read_parquet_files(paths: Sequence[Path]) -> Iterator[Read]:
    """Parquet files with the columns of `generators.scene_graphs.captions`, read a batch of rows at a time."""
    for path in paths:
        for number, row in enumerate(parquet_fields(path), 1):
            place = f"row {number}" if len(paths) == 1 else f"{path.name} row {number}"
            default_id = f"{number:09d}" if len(paths) == 1 else f"{path.stem}-{number:09d}"
            yield from_fields(row, place, default_id)


def parquet_fields(path: Path, more: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a file, of the known columns and those in ``more``; columns of images or lists are not read.

    Raises `WrongUse` when it is no Parquet file, ends early or has no column of captions.
    """
    wanted = {*CAPTION, *CAPTION_ID, *IMAGE_ID, *IMAGE, *more}
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            names = [
                field.name for field in file.schema_arrow if field.name in wanted and not pa.types.is_nested(field.type)
            ]
            if not set(CAPTION) & set(names):
                raise WrongUse(
                    f"{path}: no column {' or '.join(CAPTION)} (it has {', '.join(file.schema_arrow.names)[:200]}); "
                    "rename the column of captions"
                )
            for batch in file.iter_batches(columns=names, use_threads=False):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise WrongUse(f"{path}: not a Parquet file that can be read ({error}); fetch or write it again") from error
