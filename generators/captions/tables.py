"""Captions in files: tables, Conceptual Captions, Flickr's tokens, SCAN's five lines, and JSON of several forms."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import NOTHING, Terms, coco_terms
from twinset.contracts.references import reasons_beside
from twinset.generators.annotation_files import (
    LINE_REASONS,
    TERM_REASONS,
    Skipped,
    checked,
    delimiter_of,
    lines,
    read_json,
    records,
    text_of,
)

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
_KNOWN = {*CAPTIONS, *CAPTION_ID, *IMAGE_ID, *LICENCE, *CREDIT, *SOURCE_URL, "split", "status", "file_path"}
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
        yield Skipped(place, record.reason if isinstance(record, Skipped) else "no-object")
        return
    names = [str(name).strip().lower() for name in record]
    fields = dict(zip(names, record.values(), strict=True))
    if isinstance(fields.get("captions"), str):
        fields["captions"] = [fields["captions"]]
    several = next((name for name in CAPTIONS if isinstance(fields.get(name), list)), "")
    if any(name in _KNOWN and names.count(name) > 1 for name in names if len(fields) < len(names)):
        yield Skipped(place, "repeated-key")
    elif not several:
        yield from_fields(fields, place, default_id)
    elif not fields[several]:
        yield Skipped(place, "no-caption")
    else:
        about = {name: value for name, value in fields.items() if name not in (*CAPTIONS, *CAPTION_ID)}
        folder, file = _text(fields, ("filepath", "file_path")), _text(fields, ("filename", "image_name"))
        if several == "regions":
            about |= {"image_id": fields.get("id"), "image": f"{text_of(fields.get('id'))}.jpg"}
        elif folder and file:
            about = {"image_id": file, **about, "image": f"{folder}/{file}"}
        for number, caption in enumerate(fields[several]):
            said = caption if isinstance(caption, dict) else {"caption": caption}
            said = {"caption": said.get("raw", said.get("phrase")), **said}
            yield from_fields({**about, **said}, place, f"{_text(about, IMAGE_ID)}#{number}")


def from_fields(fields: Mapping[str, Any], place: str, default_id: str) -> Read:
    """A caption of named fields in small letters, unless something in it is empty, too long or not known.

    default_id: where it has no id of its own.
    """
    caption, image_id, image = (_text(fields, names) for names in (CAPTION, IMAGE_ID, IMAGE))
    caption_id = _text(fields, CAPTION_ID) or default_id
    terms = stated_terms(fields)
    try:
        "\0".join((caption, image_id, image, caption_id, *terms)).encode()
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
    if isinstance(terms, str):
        return Skipped(place, terms)
    return Caption(caption_id, image_id, caption, image, place, _text(fields, ("split",)), terms)


def stated_terms(fields: Mapping[str, Any]) -> Terms | str:
    """Terms of named fields, or the reason to leave the record out. LAION has ``?`` for unknown licences."""
    licence, *others = (_text(fields, names) for names in (LICENCE, CREDIT, SOURCE_URL))
    return Terms.named("" if licence.strip() == "?" else licence, *others)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that holds text or a whole number; empty where none does."""
    return next((text for name in names if (text := text_of(fields.get(name)))), "")


def numbered_rows(path: Path) -> Iterator[tuple[str, int, Any]]:
    """The `generators.annotation_files.records` of a file, of Parquet without columns that are not known.

    Raises `WrongUse` also where no column is of captions, or none of images, or two have one name.
    """

    def choose(there: Sequence[str]) -> Sequence[str]:
        names = [name.strip().lower() for name in there]
        for what, known, wanted in (("captions", CAPTION, CAPTIONS), ("images", IMAGE_ID, IMAGE_ID)):
            if not {*wanted} & {*names}:
                raise WrongUse(
                    f"{path}: no column of {what}: it would be called {', '.join(known[:-1])} or {known[-1]}, and "
                    f"there are {', '.join(there)[:200] or 'none'}; rename one, in a table of text by its first line"
                )
        if twice := next((name for name in names if names.count(name) > 1 and name in _KNOWN), ""):
            raise WrongUse(f"{path}: two columns are called {twice}, and which is meant is not said; rename one")
        return [name for name in there if name.strip().lower() in _KNOWN]

    return records(path, choose)


def read_rows(path: Path) -> Iterator[Read]:
    """Tables of text with names of columns, JSON lines and Parquet, each record as `from_record` reads it.

    The id of a caption is its line's or row's number, where it has no other.
    """
    for noun, number, record in numbered_rows(path):
        yield from from_record(record, f"{noun} {number}", f"{number:09d}")


def read_parquet_folder(*paths: Path) -> Iterator[Read]:
    """Parquet files of one folder, as `read_rows`."""
    if len(paths) == 1:
        yield from read_rows(*paths)
        return
    for path in paths:
        for noun, number, record in numbered_rows(path):
            yield from from_record(record, f"{path.name} {noun} {number}", f"{path.stem}-{number:09d}")


FLICKR_ID = re.compile(r"(?P<image>.+)#\d+")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")

#: What a line says, by the name of its file and its number; or why it says nothing.
Parse = Callable[[str, str, int], Mapping[str, str] | str]


def has_header(line: str) -> bool:
    """Whether a table's first line names captions beside other columns, or says what is between these."""
    names = next(csv.reader([line[:LONGEST_CAPTION]], delimiter=delimiter_of(line)), []) if "\r" not in line else []
    return line.startswith("sep=") or (len(names) > 1 and bool({*CAPTION} & {name.strip().lower() for name in names}))


def conceptual_captions(line: str, name: str, number: int) -> Mapping[str, str] | str:
    """``caption<TAB>url`` as it stands: the URL is the image's id, and the line's number that of the caption."""
    caption, *urls = line.split("\t")
    if len(urls) != 1:
        return "wrong-columns"
    return {"caption": caption, "url": urls[0].strip()} if URL.fullmatch(urls[0].strip()) else "no-url"


def flickr_tokens(line: str, name: str, number: int) -> Mapping[str, str] | str:
    """Flickr8k and Flickr30k: ``IMAGE#k<TAB>caption``; what is before the tab is the caption's id."""
    caption_id, tab, caption = line.partition("\t")
    if not (found := FLICKR_ID.fullmatch(caption_id)) or not tab:
        return "no-image-id" if tab else "no-tab"
    return {"caption": caption, "image": found["image"], "caption_id": caption_id}


def five_lines(line: str, name: str, number: int) -> Mapping[str, str] | str:
    """SCAN's and VSE++'s ``test_caps.txt``: a caption a line, five lines an image, which goes by its number from 0."""
    return {"caption": line, "image_id": f"{name.partition('_caps')[0]}-{(number - 1) // 5}"}


def read_lines(parse: Parse, path: Path) -> Iterator[Read]:
    """A caption a line."""
    for number, line in lines(path):
        said = line.reason if isinstance(line, Skipped) else parse(line, path.name, number)
        place = f"line {number}"
        yield Skipped(place, said) if isinstance(said, str) else from_fields(said, place, f"{number:09d}")


_FORMS = (
    "COCO's {images, annotations}, Karpathy's {images: [{filename, split, sentences}]}, lists of {image_name, "
    "captions: […]}, Visual Genome's [{id, regions}], SBU's {image_urls, captions}, or a list of objects with a "
    "caption and an image"
)


def read_json_captions(path: Path) -> Iterator[Read]:
    """The captions of a file of one JSON value, in its order; each record is read by itself, as in any other format.

    The whole file is held: Karpathy's of COCO has 144 MB. Raises `WrongUse` where it has another structure.
    """
    content: Any = read_json(path, leave_out=True)
    listed = content.get("images") if isinstance(content, dict) else content
    try:
        if isinstance(content, dict) and "annotations" in content:
            yield from _coco(content)
        elif isinstance(content, dict) and {"image_urls", "captions"} <= content.keys():
            for number, (url, caption) in enumerate(zip(content["image_urls"], content["captions"], strict=True), 1):
                yield from_fields({"url": url, "caption": caption}, f"caption {number}", f"{number:09d}")
        elif isinstance(listed, list) and any(isinstance(record, dict | Skipped) for record in listed):
            for number, record in enumerate(listed, 1):
                of_image = isinstance(record, dict) and any(isinstance(value, list) for value in record.values())
                place = f"{'image' if of_image else 'object'} {number}"
                yield from from_record(checked(record, place), place, f"{number:09d}")
        else:
            raise WrongUse(f"{path}: not captions in a form that is known; they are {_FORMS}")
    except (KeyError, TypeError, ValueError) as error:
        problem = f"not captions as its form has them ({type(error).__name__}: {error})"
        raise WrongUse(f"{path}: {problem}; forms are {_FORMS}") from error


def _coco(content: Any) -> Iterator[Read]:
    """``{"images": [{id, file_name, license, flickr_url}], "annotations": [{id, image_id, caption}], "licenses": [{id,
    name, url}]}``, of which the licences and addresses may be absent."""
    terms, images = coco_terms(content), dict[str, dict[str, Any]]()
    for number, image in enumerate(content["images"], 1):
        image_id = text_of(image.get("id")) if isinstance(image, dict) else ""
        if not image_id:
            yield Skipped(f"image record {number}", "no-image-id")
            continue
        said: dict[str, Any] = {"image": text_of(image.get("file_name")), **terms[str(image["id"])].columns}
        if (file := images.setdefault(image_id, said)["image"]) != said["image"]:
            raise ValueError(f"image id {image_id} is that of {file} and of {said['image']}")
    without = dict.fromkeys(images)
    for number, annotation in enumerate(content["annotations"], 1):
        place = f"annotation {number}"
        if isinstance(annotation := checked(annotation, place), Skipped):
            yield annotation
        elif not isinstance(annotation, dict) or not (caption_id := text_of(annotation.get("id"))):
            yield Skipped(place, "no-caption-id")
        elif (image_id := text_of(annotation.get("image_id"))) not in images:
            yield Skipped(place, "unknown-image")
        else:
            without.pop(image_id, None)
            yield from_fields({**annotation, **images[image_id]}, place, caption_id)
    yield from (Skipped(f"image {image_id}", "no-caption") for image_id in without)
