"""Captions in files of a record a line or row: CC3M's TSV, CSV, Flickr's token files, JSON lines, Parquet."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.generators.annotation_files import LINE_REASONS, TERM_REASONS, Skipped, lines, parquet_rows
from twinset.generators.annotation_files import read_json_lines as read_values
from twinset.manifests.errors import WrongUse
from twinset.manifests.licences.terms import NOTHING, Terms
from twinset.manifests.references import reasons_beside

LONGEST_CAPTION = 10_000  # characters: some thousand words, where a caption has ten

#: Why a line or row of captions is left out.
CAPTION_REASONS = {**LINE_REASONS, **TERM_REASONS, **reasons_beside(__file__, "captions")}

# Names that columns and fields go by; the first that is there counts.
CAPTION = ("caption", "text", "sentence")
CAPTION_ID = ("caption_id", "id")
IMAGE_ID = ("image_id", "key", "image", "file_name", "filename", "url", "path", "image_url")
IMAGE = ("image", "path", "file_name", "filename", "url", "image_url")
LICENCE, CREDIT, SOURCE_URL = ("licence", "license"), ("credit",), ("source_url",)


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption of an image.

    caption_id: different for every caption of a source. image_id: the same for captions of one image. image: where the
    image is, as the source says it: a URL, a file name, or TAR/MEMBER; may be empty. place: where the caption stands.
    split: of the image, such as ``restval``, where the source says it. terms: of the image, as far as it says them.
    """

    caption_id: str
    image_id: str
    caption: str
    image: str
    place: str
    split: str = ""
    terms: Terms = NOTHING


Read = Caption | Skipped


def from_fields(fields: Mapping[str, Any], place: str, default_id: str) -> Read:
    """A caption of named fields (a JSON object, a row), unless something in it is empty, too long or not known.

    default_id: where it has no id of its own.
    """
    caption, image_id, image = (_text(fields, names) for names in (CAPTION, IMAGE_ID, IMAGE))
    stated = [_text(fields, names) for names in (LICENCE, CREDIT, SOURCE_URL)]
    try:
        "\0".join((caption, image_id, image, default_id, *stated)).encode()
    except UnicodeEncodeError:  # half a surrogate pair, or a name in another encoding
        return Skipped(place, "not-utf-8")
    if not caption.strip():
        return Skipped(place, "empty-caption")
    if len(caption) > LONGEST_CAPTION:
        return Skipped(place, "too-long")
    if not image_id:
        return Skipped(place, "no-image-id")
    terms = stated_terms(fields)
    if isinstance(terms, str):
        return Skipped(place, terms)
    return Caption(
        _text(fields, CAPTION_ID) or default_id, image_id, caption, image, place, _text(fields, ("split",)), terms
    )


def terms_in(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that state terms."""
    return {name: fields.get(name) for name in (*LICENCE, *CREDIT, *SOURCE_URL)}


def stated_terms(fields: Mapping[str, Any]) -> Terms | str:
    """Terms of named fields, or the reason to leave the record out."""
    return Terms.named(*(_text(fields, names) for names in (LICENCE, CREDIT, SOURCE_URL)))


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that holds text or a whole number; empty where none does."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return ""


def _checked(path: Path, names: list[str], there: Sequence[str]) -> list[str]:
    """The names of columns; raises `WrongUse` where none is of captions, or none of images. there: as in the file."""
    for what, wanted in (("captions", CAPTION), ("images", IMAGE_ID)):
        if not set(wanted) & set(names):
            raise WrongUse(
                f"{path}: no column of {what}: it would be called {', '.join(wanted[:-1])} or {wanted[-1]}, and there "
                f"are {', '.join(there)[:200] or 'none'}; rename one, in a table of text by its first line"
            )
    return names


FLICKR_ID = re.compile(r"(?P<image>.+)#\d+")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")


def read_tsv(path: Path) -> Iterator[Read]:
    """Conceptual Captions: ``caption<TAB>url`` a line, in which the URL is the image's id and the line's number the
    caption's; or columns named by a first line that names a caption (`generators.captions.tables`)."""
    columns: list[str] | None = None
    for number, line in lines(path):
        place, default_id = f"line {number}", f"{number:09d}"
        if isinstance(line, Skipped):
            yield line
            continue
        fields = line.split("\t")
        if number == 1 and len(fields) > 1 and set(CAPTION) & {field.strip().lower() for field in fields}:
            columns = _checked(path, [field.strip().lower() for field in fields], fields)
        elif len(fields) != len(columns or ("caption", "url")):
            yield Skipped(place, "wrong-columns")
        elif columns is not None:
            yield from_fields(dict(zip(columns, fields, strict=True)), place, default_id)
        elif not URL.fullmatch(url := fields[1].strip()):
            yield Skipped(place, "no-url")
        else:
            yield from_fields({"caption": fields[0], "url": url}, place, default_id)


def read_csv(path: Path) -> Iterator[Read]:
    """CSV whose first line names the columns (`generators.captions.tables`).

    Raises `WrongUse` where it names no column of captions or of images, or the file cannot be read to its end.
    """
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for at, line in lines(path):
            number = at
            yield "\n" if isinstance(line, Skipped) else f"{line}\n"

    rows = csv.reader(texts(), strict=True)
    try:
        named = next(rows, [])
        columns = _checked(path, [name.strip().lower() for name in named], named)
        for row in rows:
            if len(row) != len(columns):
                yield Skipped(f"line {number}", "wrong-columns")
            else:
                yield from_fields(dict(zip(columns, row, strict=True)), f"line {number}", f"{number:09d}")
    except csv.Error as error:
        raise WrongUse(f"{path}, line {number}: not CSV ({error}); correct it or fetch the file again") from error


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


def read_five_lines(path: Path) -> Iterator[Read]:
    """SCAN's and VSE++'s ``test_caps.txt``: a caption a line, five lines an image, which goes by its number from 0."""
    for number, line in lines(path):
        place, image = f"line {number}", f"{path.name.partition('_caps')[0]}-{(number - 1) // 5}"
        if isinstance(line, Skipped):
            yield line
        else:
            yield from_fields({"caption": line, "image_id": image}, place, f"{number:09d}")


def read_json_lines(path: Path) -> Iterator[Read]:
    """A JSON object a line, with the fields of `generators.captions.tables`."""
    for number, value in read_values(path):
        place = f"line {number}"
        if isinstance(value, Skipped):
            yield value
        else:
            yield from_fields(value, place, f"{number:09d}") if isinstance(value, dict) else Skipped(place, "no-object")


def read_parquet_files(*paths: Path) -> Iterator[Read]:
    """Parquet files with the columns of `generators.captions.tables`, read a batch of rows at a time."""
    for path in paths:
        for number, row in enumerate(parquet_fields(path), 1):
            place = f"row {number}" if len(paths) == 1 else f"{path.name} row {number}"
            default_id = f"{number:09d}" if len(paths) == 1 else f"{path.stem}-{number:09d}"
            yield from_fields(row, place, default_id)


def parquet_fields(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, of the known columns; columns of images or lists are not read.

    Raises `WrongUse` when it is no Parquet file, ends early or has no column of captions or of images.
    """
    wanted = {*CAPTION, *CAPTION_ID, *IMAGE_ID, *IMAGE, *LICENCE, *CREDIT, *SOURCE_URL, "split", "status"}

    def columns(schema: pa.Schema) -> list[str]:
        flat = [field.name for field in schema if not pa.types.is_nested(field.type)]
        return _checked(path, [name for name in flat if name in wanted], schema.names)

    return parquet_rows(path, columns)
