"""Captions in files of a record a line or row: CC3M's TSV, CSV, Flickr's token files, JSON lines, Parquet."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import NOTHING, Terms
from twinset.contracts.references import reasons_beside
from twinset.generators.annotation_files import (
    LINE_REASONS,
    TERM_REASONS,
    Skipped,
    delimiter_of,
    lines,
    parquet_rows,
    table_rows,
    text_of,
)
from twinset.generators.annotation_files import read_json_lines as read_values

LONGEST_CAPTION = 10_000  # characters: some thousand words, where a caption has ten

#: Why a line or row of captions is left out.
CAPTION_REASONS = {**LINE_REASONS, **TERM_REASONS, **reasons_beside(__file__, "captions")}

# Names that columns and fields go by; the first that is there counts.
CAPTION = ("caption", "text", "sentence", "title")
CAPTIONS = ("captions", "sentences", "regions", *CAPTION)  # of an image, where they hold a list
CAPTION_ID = ("caption_id", "sentid", "region_id", "id")
IMAGE = ("image", "path", "file_name", "filename", "filepath", "url", "image_url", "image_name")
IMAGE_ID = ("cocoid", "image_id", "key", *IMAGE)
LICENCE, CREDIT, SOURCE_URL = ("licence", "license"), ("credit",), ("source_url",)
#: What img2dataset says of an image that is not there.
STATUS = {"failed_to_download": "not-downloaded", "failed_to_resize": "not-resized"}


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


def from_record(record: Any, place: str, default_id: str) -> Iterator[Read]:
    """The captions of an object or a row, of whatever format: one; a list of texts; Karpathy's ``sentences: [{raw,
    sentid}]``; or Visual Genome's ``regions: [{region_id, phrase}]``, whose ``id`` is the image's.
    """
    if not isinstance(record, Mapping):
        yield Skipped(place, "no-object")
        return
    fields = {str(name).strip().lower(): value for name, value in record.items()}
    if isinstance(fields.get("captions"), str):
        fields["captions"] = [fields["captions"]]
    several = next((name for name in CAPTIONS if isinstance(fields.get(name), list)), "")
    if not several:
        names = [name for name in (str(name).strip().lower() for name in record) if name in _KNOWN]
        repeated = len({*names}) < len(names)
        yield Skipped(place, "repeated-key") if repeated else from_fields(fields, place, default_id)
        return
    about = {name: value for name, value in fields.items() if name not in (*CAPTIONS, *CAPTION_ID)}
    folder, name = _text(fields, ("filepath", "file_path")), _text(fields, ("filename", "image_name"))
    if several == "regions":
        about |= {"image_id": fields.get("id"), "image": f"{text_of(fields.get('id'))}.jpg"}
    elif folder and name:
        about = {"image_id": name, **about, "image": f"{folder}/{name}"}
    if not fields[several]:
        yield Skipped(place, "no-caption")
    for number, caption in enumerate(fields[several]):
        said = caption if isinstance(caption, dict) else {"caption": caption}
        said = {"caption": said.get("raw", said.get("phrase")), **said}
        yield from_fields({**about, **said}, place, f"{_text(about, IMAGE_ID)}#{number}")


def from_fields(fields: Mapping[str, Any], place: str, default_id: str) -> Read:
    """A caption of named fields in small letters, unless something in it is empty, too long or not known.

    default_id: where it has no id of its own.
    """
    caption, image_id, image = (_text(fields, names) for names in (CAPTION, IMAGE_ID, IMAGE))
    stated = [_text(fields, names) for names in (LICENCE, CREDIT, SOURCE_URL)]
    try:
        "\0".join((caption, image_id, image, default_id, *stated)).encode()
    except UnicodeEncodeError:  # half a surrogate pair, or a name in another encoding
        return Skipped(place, "not-utf-8")
    if missing := STATUS.get(_text(fields, ("status",))):
        return Skipped(place, missing)
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


def stated_terms(fields: Mapping[str, Any]) -> Terms | str:
    """Terms of named fields, or the reason to leave the record out. LAION has ``?`` for unknown licences."""
    licence, *others = (_text(fields, names) for names in (LICENCE, CREDIT, SOURCE_URL))
    return Terms.named("" if licence.strip() == "?" else licence, *others)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that holds text or a whole number; empty where none does."""
    return next((text for name in names if (text := text_of(fields.get(name)))), "")


def _check(path: Path, there: Sequence[str], of_text: bool) -> None:
    """Raise `WrongUse` where no column is of captions, or none of images, or two have one name.

    there: their names. of_text: whether no column can hold lists.
    """
    names = [name.strip().lower() for name in there]
    for what, wanted in (("captions", CAPTION if of_text else CAPTIONS), ("images", IMAGE_ID)):
        if not {*wanted} & {*names}:
            known = CAPTION if what == "captions" else IMAGE_ID
            raise WrongUse(
                f"{path}: no column of {what}: it would be called {', '.join(known[:-1])} or {known[-1]}, and there "
                f"are {', '.join(there)[:200] or 'none'}; rename one, in a table of text by its first line"
            )
    if twice := next((name for name in names if names.count(name) > 1 and name in _KNOWN), ""):
        raise WrongUse(f"{path}: two columns are called {twice}, and which is meant is not said; rename one")


FLICKR_ID = re.compile(r"(?P<image>.+)#\d+")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")


def has_header(line: str) -> bool:
    """Whether a table's first line names captions beside other columns."""
    names = next(csv.reader([line[:LONGEST_CAPTION]], delimiter=delimiter_of(line)), []) if "\r" not in line else []
    return len(names) > 1 and bool({*CAPTION} & {name.strip().lower() for name in names})


def read_table(path: Path) -> Iterator[Read]:
    """A table of text (`generators.annotation_files.table_rows`).

    Where no captions are named, and it is not called ``.csv``, Conceptual Captions: ``caption<TAB>url`` a line as it
    stands, in which the URL is the image's id. The id of a caption is its line's number, where it has no other.

    Raises `WrongUse` where a line of names lacks captions or images, or the file cannot be read to its end.
    """
    first = next((line for _, line in lines(path) if isinstance(line, str)), "")
    if not has_header(first) and ".csv" not in path.name.lower():
        yield from _conceptual_captions(path)
        return
    for number, record in table_rows(path, lambda names: _check(path, names, of_text=True)):
        yield from _read(record, f"line {number}", f"{number:09d}")


def _read(record: Any, place: str, default_id: str) -> Iterator[Read]:
    return iter([record]) if isinstance(record, Skipped) else from_record(record, place, default_id)


def _conceptual_captions(path: Path) -> Iterator[Read]:
    for number, line in lines(path):
        place = f"line {number}"
        if isinstance(line, Skipped):
            yield line
        elif len(fields := line.split("\t")) != 2:
            yield Skipped(place, "wrong-columns")
        elif not URL.fullmatch(url := fields[1].strip()):
            yield Skipped(place, "no-url")
        else:
            yield from_fields({"caption": fields[0], "url": url}, place, f"{number:09d}")


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
    """A JSON object a line, with the fields of `from_record`."""
    for number, value in read_values(path):
        yield from _read(value, f"line {number}", f"{number:09d}")


def read_parquet_files(*paths: Path) -> Iterator[Read]:
    """Parquet files with the columns of `from_record`, read a batch of rows at a time."""
    for path in paths:
        for number, row in enumerate(parquet_fields(path), 1):
            place = f"row {number}" if len(paths) == 1 else f"{path.name} row {number}"
            default_id = f"{number:09d}" if len(paths) == 1 else f"{path.stem}-{number:09d}"
            yield from from_record(row, place, default_id)


_KNOWN = {*CAPTIONS, *CAPTION_ID, *IMAGE_ID, *LICENCE, *CREDIT, *SOURCE_URL, "split", "status", "file_path"}


def parquet_fields(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, of the known columns; columns of images are not read, nor lists of others than captions.

    Raises `WrongUse` when it is no Parquet file, ends early or has no column of captions or of images.
    """

    def columns(schema: pa.Schema) -> list[str]:
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        of_lists = [
            field.name
            for field in schema
            if any(is_list(field.type) for is_list in lists) and field.name.strip().lower() in CAPTIONS
        ]
        flat = [field.name for field in schema if not pa.types.is_nested(field.type) or field.name in of_lists]
        _check(path, flat, of_text=False)
        return [name for name in flat if name.strip().lower() in _KNOWN]

    return parquet_rows(path, columns)
