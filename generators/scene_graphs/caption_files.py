"""Readers of captions: CC3M's TSV, Flickr's token files, COCO's JSON, JSON lines, Parquet and img2dataset's folders."""

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from twinset.generators.annotation_files import LINE_REASONS, Skipped, lines, parquet_rows, read_json
from twinset.generators.annotation_files import read_json_lines as read_values
from twinset.manifests.errors import WrongUse
from twinset.manifests.references import reasons_beside
from twinset.shards.storage.tar_reader import HEADER_ERRORS

LONGEST_CAPTION = 10_000  # characters: some thousand words, where a caption has ten

#: Why a line or row of captions is left out.
CAPTION_REASONS = {**LINE_REASONS, **reasons_beside(__file__, "captions")}

# Names that columns and fields go by; the first that is there counts.
CAPTION = ("caption", "text", "sentence")
CAPTION_ID = ("caption_id", "id")
IMAGE_ID = ("image_id", "key", "image", "file_name", "filename", "url")
IMAGE = ("image", "path", "file_name", "filename", "url", "image_url")


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption of an image.

    caption_id: different for every caption of a source. image_id: the same for captions of one image. image: where the
    image is, as the source says it: a URL, a file name, or TAR/MEMBER; may be empty. place: where the caption stands.
    """

    caption_id: str
    image_id: str
    caption: str
    image: str
    place: str


Read = Caption | Skipped


def from_fields(fields: Mapping[str, Any], place: str, default_id: str) -> Read:
    """A caption of named fields (a JSON object, a row), unless something in it is empty or too long.

    default_id: where it has no id of its own.
    """
    caption, image_id, image = (_text(fields, names) for names in (CAPTION, IMAGE_ID, IMAGE))
    if not caption.strip():
        return Skipped(place, "empty-caption")
    if len(caption) > LONGEST_CAPTION:
        return Skipped(place, "too-long")
    if not image_id:
        return Skipped(place, "no-image-id")
    return Caption(_text(fields, CAPTION_ID) or default_id, image_id, caption, image, place)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that holds text or a whole number; empty where none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return ""


FLICKR_ID = re.compile(r"(?P<image>.+)#\d+")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".avif")  # of what img2dataset writes


def read_tsv(path: Path) -> Iterator[Read]:
    """Conceptual Captions: ``caption<TAB>url`` a line, in which the URL is the image's id and the line's number the
    caption's; or columns named by a first line that names a caption (`generators.scene_graphs.caption_files`)."""
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
            yield from_fields({"caption": fields[0], "url": url}, place, default_id)


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
            yield from_fields({"caption": caption, "image": found["image"]}, place, caption_id)


def read_json_lines(path: Path) -> Iterator[Read]:
    """A JSON object a line, with the fields of `generators.scene_graphs.caption_files`."""
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


def read_parquet_files(*paths: Path) -> Iterator[Read]:
    """Parquet files with the columns of `generators.scene_graphs.caption_files`, read a batch of rows at a time."""
    for path in paths:
        for number, row in enumerate(_parquet_fields(path), 1):
            place = f"row {number}" if len(paths) == 1 else f"{path.name} row {number}"
            default_id = f"{number:09d}" if len(paths) == 1 else f"{path.stem}-{number:09d}"
            yield from_fields(row, place, default_id)


def read_img2dataset(folder: Path) -> Iterator[Read]:
    """A folder that img2dataset wrote as WebDataset: images in ``00000.tar``, captions in ``00000.parquet``.

    Captions of the images that were downloaded: id of caption and image is img2dataset's key, and the image is at
    ``00000.tar/KEY.jpg`` below the folder. What was not downloaded is left out, and so are unfinished shards.
    """
    for stem in sorted({path.stem for pattern in ("*.tar", "*.parquet") for path in folder.glob(pattern)}):
        tar, table = folder / f"{stem}.tar", folder / f"{stem}.parquet"
        if not tar.is_file() or not table.is_file():
            yield Skipped(f"{stem}.{'tar' if table.is_file() else 'parquet'}", "unfinished-shard")
            continue
        try:
            images = _images(tar)
        except (*HEADER_ERRORS, OSError):
            yield Skipped(tar.name, "broken-tar")
            continue
        for number, row in enumerate(_parquet_fields(table), 1):
            place, key = f"{table.name} row {number}", row.get("key")
            if row.get("status", "success") != "success":
                yield Skipped(place, "not-downloaded")
            elif not isinstance(key, str) or key not in images:
                yield Skipped(place, "no-image")
            else:
                fields = {**row, "image_id": key, "caption_id": key, "image": f"{tar.name}/{images[key]}"}
                yield from_fields(fields, place, key)


def _parquet_fields(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, of the known columns; columns of images or lists are not read.

    Raises `WrongUse` when it is no Parquet file, ends early or has no column of captions.
    """
    wanted = {*CAPTION, *CAPTION_ID, *IMAGE_ID, *IMAGE, "status"}

    def columns(schema: pa.Schema) -> list[str]:
        names = [field.name for field in schema if field.name in wanted and not pa.types.is_nested(field.type)]
        if not set(CAPTION) & set(names):
            raise WrongUse(
                f"{path}: no column {' or '.join(CAPTION)} (it has {', '.join(schema.names)[:200]}); "
                "rename the column of captions"
            )
        return names

    return parquet_rows(path, columns)


class _Header(tarfile.TarInfo):
    """The header of a member. A damaged one is an error: `tarfile` takes it for the end of the tar behind the first."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.InvalidHeaderError as error:  # type: ignore[attr-defined]
            raise tarfile.ReadError(str(error)) from error


def _images(tar: Path) -> dict[str, str]:
    """Names of the images in a tar by key; only its headers are read."""
    found: dict[str, str] = {}
    with tarfile.open(tar, "r:", tarinfo=_Header) as members:
        for member in members:
            if member.size < 0:  # tarfile would step back, and read the same headers for ever
                raise tarfile.ReadError(f"{member.name}: negative size")
            key, dot, suffix = member.name.partition(".")
            if member.isfile() and f"{dot}{suffix}".lower() in IMAGE_SUFFIXES:
                found[key] = member.name
            members.members = []  # type: ignore[attr-defined]  # tarfile keeps all that it met
    return found
