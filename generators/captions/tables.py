"""Captions as other people's files and folders hold them: what each path holds, one reader a form, and its digest."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from pathlib import Path, PurePosixPath
from typing import Any

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import NOTHING, Terms
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import (
    LINE_REASONS,
    LONGEST_LINE,
    TERM_REASONS,
    Skipped,
    checked,
    delimiter_of,
    json_value,
    lines,
    read_json,
    records,
    refuse_unusable,
    text_of,
)
from twinset.generators.licences import coco_terms, terms_named
from twinset.generators.reasons import reasons_beside
from twinset.shards.media.media_folder import IMAGE_SUFFIXES
from twinset.shards.storage.path_ends import walk
from twinset.shards.storage.tar_reader import BrokenTar, member_headers

LONGEST_CAPTION = 10_000  # characters: some thousand words, where a caption has ten
SNIFFED = 50  # lines that tell a token file from a TSV

#: Why a line or row of captions is left out.
CAPTION_REASONS = {**LINE_REASONS, **TERM_REASONS, **reasons_beside(__file__, "captions")}

# Names that columns and fields go by; the first that is there counts.
CAPTION = ("caption", "text", "sentence", "title")
CAPTIONS = ("captions", "sentences", *CAPTION)  # of an image, where they hold a list
CAPTION_ID = ("caption_id", "sentid", "id")
IMAGE = ("image", "path", "file_name", "filename", "filepath", "url", "image_url", "image_name")
IMAGE_ID = ("cocoid", "image_id", "key", *IMAGE)
LICENCE, CREDIT, SOURCE_URL = ("licence", "license"), ("credit",), ("source_url",)
_OF_IMAGE = (*LICENCE, *CREDIT, *SOURCE_URL, "split")
_KNOWN = {*CAPTIONS, *CAPTION_ID, *IMAGE_ID, *_OF_IMAGE, "status"}
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
    """The captions of an object or a row: one, a list of texts, or Karpathy's ``sentences: [{raw, sentid}]``."""
    if not isinstance(record, Mapping):
        yield Skipped(place, record.reason if isinstance(record, Skipped) else "no-object")
        return
    fields = {str(name).strip().lower(): value for name, value in record.items()}
    if isinstance(fields.get("captions"), str):
        fields["captions"] = [fields["captions"]]
    several = next((name for name in CAPTIONS if isinstance(fields.get(name), list)), "")
    if len(fields) < len(record):
        yield Skipped(place, "repeated-key")
    elif not (fields[several] if several else {*CAPTIONS} & fields.keys()):
        yield Skipped(place, "no-caption")
    elif not several:
        yield from_fields(fields, place, default_id)
    else:
        about = {name: value for name, value in fields.items() if name not in (*CAPTIONS, *CAPTION_ID)}
        folder, file = _text(fields, ("filepath",)), _text(fields, ("filename",))
        if folder and file:
            about = {"image_id": file, **about, "image": f"{folder}/{file}"}
        for number, caption in enumerate(fields[several]):
            sentence = caption if isinstance(caption, dict) else {"raw": caption}
            own = {"caption": sentence.get("raw"), "sentid": sentence.get("sentid")}
            yield from_fields({**about, **own}, place, f"{_text(about, IMAGE_ID)}#{number}")


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
    licence, *credit_and_url = (_text(fields, names) for names in (LICENCE, CREDIT, SOURCE_URL))
    return terms_named("" if licence.strip() == "?" else licence, *credit_and_url)


def _text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that holds text or a whole number; empty where none does."""
    return next((text for name in names if (text := text_of(fields.get(name)))), "")


def numbered_rows(path: Path) -> Iterator[tuple[str, int, Any]]:
    """The `generators.annotation_files.records` of a file, of Parquet without columns that are not known."""
    return records(path, lambda columns: [name for name in columns if name.strip().lower() in _KNOWN])


def read_rows(*paths: Path) -> Iterator[Read]:
    """Tables of text with names of columns, JSON lines, and Parquet, also of several files; records as `from_record`.

    The id of a caption is its line's or row's number, where it has no other.
    """
    for path in paths:
        file, stem = (f"{path.name} ", f"{path.stem}-") if len(paths) > 1 else ("", "")
        for noun, number, record in numbered_rows(path):
            yield from from_record(record, f"{file}{noun} {number}", f"{stem}{number:09d}")


def conceptual_captions(line: str) -> Mapping[str, str] | str:
    """``caption<TAB>url`` as it stands: the URL is the image's id, and the line's number that of the caption."""
    caption, *urls = line.split("\t")
    if len(urls) != 1:
        return "wrong-columns"
    return {"caption": caption, "url": urls[0].strip()} if "://" in urls[0] else "no-url"


def flickr_tokens(line: str) -> Mapping[str, str] | str:
    """Flickr8k and Flickr30k: ``IMAGE#k<TAB>caption``; what is before the tab is the caption's id."""
    caption_id, tab, caption = line.partition("\t")
    image, _, number = caption_id.rpartition("#")
    if not tab or not image or not number.isdecimal():
        return "no-image-id" if tab else "no-tab"
    return {"caption": caption, "image": image, "caption_id": caption_id}


def read_lines(parse: Callable[[str], Mapping[str, str] | str], path: Path) -> Iterator[Read]:
    """A caption a line. parse: what a line says; or why it says nothing."""
    for number, line in lines(path):
        fields = line.reason if isinstance(line, Skipped) else parse(line)
        place = f"line {number}"
        yield Skipped(place, fields) if isinstance(fields, str) else from_fields(fields, place, f"{number:09d}")


_FORMS = (
    "captions are a TSV of caption and url, a table with names of columns, a Flickr token file, .jsonl, .parquet, a "
    ".json of COCO {images, annotations}, Karpathy {images: [{filename, split, sentences}]}, SBU {image_urls, "
    "captions} or a list of objects, a folder of Parquet files, of tars, or of images with texts beside them; columns "
    f"and fields are called {' or '.join(CAPTION)}, and {' or '.join(IMAGE_ID)}"
)


def read_json_captions(path: Path) -> Iterator[Read]:
    """The captions of a file of one JSON value, in its order; each record is read by itself, as in any other format.

    The whole file is held: Karpathy's of COCO has 144 MB. Raises `WrongUse` where it has another structure.
    """
    content: Any = read_json(path, leave_out=True)
    try:
        if isinstance(content, dict) and "annotations" in content:
            yield from _coco(content)
            return
        listed = content
        if isinstance(content, dict):
            sbu = zip(content.get("image_urls", ()), content.get("captions", ()), strict=True)
            listed = content.get("images") or [{"url": url, "caption": caption} for url, caption in sbu]
        if not isinstance(listed, list) or not any(isinstance(record, dict | Skipped) for record in listed):
            raise ValueError("no list of objects")
        for number, record in enumerate(listed, 1):
            of_image = isinstance(record, dict) and any(isinstance(value, list) for value in record.values())
            place = f"{'image' if of_image else 'object'} {number}"
            yield from from_record(checked(record, place), place, f"{number:09d}")
    except (KeyError, TypeError, ValueError) as error:
        problem = f"not captions in a form that is known ({type(error).__name__}: {error})"
        raise WrongUse(f"{path}: {problem}; {_FORMS}") from error


def _coco(content: Any) -> Iterator[Read]:
    """``{"images": [{id, file_name, license, flickr_url}], "annotations": [{id, image_id, caption}], "licenses": [{id,
    name, url}]}``, of which the licences and addresses may be absent."""
    terms, images = coco_terms(content), dict[str, dict[str, Any]]()
    for number, record in enumerate(content["images"], 1):
        place = f"image record {number}"
        image = checked(record, place)
        if isinstance(image, Skipped) or not isinstance(image, dict) or not (image_id := text_of(image.get("id"))):
            yield image if isinstance(image, Skipped) else Skipped(place, "no-image-id")
            continue
        about: dict[str, Any] = {"image": text_of(image.get("file_name")), **terms[str(image["id"])]._asdict()}
        if (file := images.setdefault(image_id, about)["image"]) != about["image"]:
            raise ValueError(f"image id {image_id} is that of {file} and of {about['image']}")
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


_TEXTS = (".txt", ".json")
#: Of a sample of WebDataset: by suffix, such as ``.jpg``, the names of members, and what those of `_TEXTS` hold.
_Fields = dict[str, list[tuple[str, bytes]]]


def _samples(tar: Path) -> dict[str, _Fields] | None:
    """The samples of a tar, by key, which ends at the first dot; None where it is broken: none of it is used."""
    samples = dict[str, _Fields]()
    try:
        with tar.open("rb") as stream:
            for name, offset, size in member_headers(stream, tar.name):
                folder, _, base = name.rpartition("/")
                stem, _, rest = base.partition(".")
                suffix = f".{rest.lower()}"
                if stem and suffix.endswith((*IMAGE_SUFFIXES, *_TEXTS)):
                    stream.seek(offset)
                    content = stream.read(min(size, LONGEST_LINE)) if suffix in _TEXTS else b""
                    fields = samples.setdefault(f"{folder}/{stem}".lstrip("/"), {})
                    fields.setdefault(suffix, []).append((name, content))
    except (BrokenTar, OSError):
        return None
    return samples


def _image_of(fields: _Fields) -> str:
    """The name of the first image, empty where there is none."""
    return next((members[0][0] for suffix, members in fields.items() if suffix in IMAGE_SUFFIXES), "")


def read_img2dataset(folder: Path) -> Iterator[Read]:
    """A folder that img2dataset wrote as WebDataset: images in ``00000.tar``, captions in ``00000.parquet``.

    Captions of the images that were downloaded: id of caption and image is img2dataset's key, and the image is at
    ``00000.tar/KEY.jpg`` below the folder. What was not downloaded is left out, and so are unfinished shards.
    """
    for stem in sorted({path.stem for pattern in ("*.tar", "*.parquet") for path in folder.glob(pattern)}):
        tar, table = folder / f"{stem}.tar", folder / f"{stem}.parquet"
        if not tar.is_file() or not table.is_file():
            yield Skipped(f"{stem}.{'tar' if table.is_file() else 'parquet'}", "unfinished-shard")
        elif (samples := _samples(tar)) is None:
            yield Skipped(tar.name, "broken-tar")
        else:
            for _, number, row in numbered_rows(table):
                place, key = f"{table.name} row {number}", text_of(row.get("key"))
                image = _image_of(samples.get(key, {}))
                if not image and row.get("status") not in STATUS:
                    yield Skipped(place, "no-image")
                else:
                    fields = {**row, "image_id": key, "caption_id": key, "image": f"{tar.name}/{image}"}
                    yield from from_record(fields, place, key)


def read_webdataset(*tars: Path) -> Iterator[Read]:
    """Tars of WebDataset: of each key an image, and its caption in ``KEY.txt`` or in a field of ``KEY.json``.

    Ids of caption and image are ``TAR/KEY``, as the same key can occur in several tars.
    """
    for tar in tars:
        if (samples := _samples(tar)) is None:
            yield Skipped(tar.name, "broken-tar")
            continue
        for key, fields in samples.items():
            place, image = f"{tar.name} {key}", _image_of(fields)
            if any(len(members) > 1 for members in fields.values()):
                yield Skipped(place, "several-fields")
            elif not image:
                yield Skipped(place, "no-image")
            else:
                about = {"image_id": f"{tar.stem}/{key}", "image": f"{tar.name}/{image}"}
                yield from from_record(_record_of(fields, place, about), place, f"{tar.stem}/{key}")


def _record_of(fields: _Fields, place: str, about: dict[str, str]) -> Any:
    """What the texts of a sample say of its image; of both, the caption is that of ``KEY.txt``."""
    record = json_value(fields.get(".json", [("", b"{}")])[0][1], place)
    if not isinstance(record, dict):
        return record
    known = _OF_IMAGE if ".txt" in fields else (*CAPTIONS, *_OF_IMAGE)
    record = {name: value for name, value in record.items() if name.lower() in known} | about
    if ".txt" in fields:
        record["caption"] = fields[".txt"][0][1].decode("utf-8-sig", "surrogateescape").strip()
    return record


def read_sidecars(folder: Path) -> Iterator[Read]:
    """A folder of images, each beside a text of its name: every line of ``a/b.txt`` is a caption of ``a/b.jpg``."""
    files = dict[str, tuple[list[str], list[str]]]()
    for name in sorted(PurePosixPath(*parts) for parts in walk(folder)):
        if (suffix := name.suffix.lower()) in (".txt", *IMAGE_SUFFIXES) and (folder / name).is_file():
            files.setdefault(str(name.with_suffix("")), ([], []))[suffix == ".txt"].append(str(name))
    for stem, (images, texts) in sorted(files.items()):
        if len(images) != 1 or len(texts) != 1:
            reason = "no-image" if not images else "several-fields" if texts else "no-caption"
            yield Skipped(stem, reason)
            continue
        count = 0
        for count, (number, line) in enumerate(lines(folder / texts[0]), 1):
            place = f"{texts[0]} line {number}"
            if isinstance(line, Skipped):
                yield Skipped(place, line.reason)
            else:
                fields = {"image_id": images[0], "image": images[0], "caption": line}
                yield from_fields(fields, place, f"{stem}#{count - 1}")
        if not count:
            yield Skipped(texts[0], "empty-caption")


#: Kind and reader of a file by its suffix, without that of compression; digests of stages have the kind.
_READERS: dict[str, tuple[str, Callable[..., Iterator[Read]]]] = {
    ".parquet": ("parquet", read_rows),
    ".csv": ("csv", read_rows),
    ".json": ("coco", read_json_captions),  # any JSON
    **dict.fromkeys((".jsonl", ".ndjson"), ("json-lines", read_rows)),
}


@dataclass(frozen=True, slots=True)
class CaptionSource:
    """One file or folder of captions.

    files: what is read whole and hashed; sized: tars, of which only the names are read. read: gives captions and what
    is left out, in the order of the files; memory does not grow with their number.
    """

    path: Path
    kind: str
    files: tuple[Path, ...]
    read: Callable[[], Iterator[Read]]
    sized: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """The file's or folder's name as text that can be written, also where the path ends with ``.`` or ``..``."""
        return os.path.basename(os.path.abspath(self.path)).encode("utf-8", "replace").decode()

    @property
    def stem(self) -> str:
        """The file's name without the suffixes of its kind and of compression, or the folder's name."""
        return self.name if self.path.is_dir() else Path(self.name.removesuffix(".gz")).stem

    def digest(self) -> str:
        """Digest of what is read: sha256 of files, names and sizes of tars."""
        hashed = [[path.name, *sha256_of_file(path)] for path in self.files]
        return digest([self.kind, hashed, [[path.name, path.stat().st_size] for path in self.sized]])


def caption_source(path: Path) -> CaptionSource:
    """The captions at a path, by its suffix and, for text, its first lines; raises `WrongUse` when there are none."""
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise WrongUse(f"{path}: no such file; name the captions: {_FORMS}")
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    kind, reader = _READERS.get(suffix, ("tsv", partial(read_lines, conceptual_captions)))
    if suffix in (".tsv", ".txt", ".token"):
        first = [line for _, line in islice(lines(path), SNIFFED) if isinstance(line, str)]
        names = [name.strip(' "').lower() for name in first[0].split(delimiter_of(first[0]))] if first else []
        if sum(not isinstance(flickr_tokens(line), str) for line in first) * 2 > len(first):
            kind, reader = "flickr-tokens", partial(read_lines, flickr_tokens)
        elif len(names) > 1 and {*CAPTION} & {*names}:
            reader = read_rows
    elif suffix not in _READERS:
        raise WrongUse(f"{path}: captions of an unknown kind ({suffix or 'no suffix'}); {_FORMS}")
    return CaptionSource(path, kind, (path,), partial(reader, path))


def _folder(path: Path) -> CaptionSource:
    tables, tars = (
        tuple(file for file in sorted(path.glob(pattern)) if file.is_file())  # no pipe, which never ends
        for pattern in ("*.parquet", "*.tar")
    )
    if tables and any(path.glob("*.tar")):
        return CaptionSource(path, "img2dataset", tables, partial(read_img2dataset, path), tars)
    if tars:
        return CaptionSource(path, "webdataset", tars, partial(read_webdataset, *tars))
    if tables:
        return CaptionSource(path, "parquet", tables, partial(read_rows, *tables))
    texts = sorted(path / folder / file for folder, file in walk(path) if file.lower().endswith(".txt"))
    if texts := [file for file in texts if file.is_file()]:
        return CaptionSource(path, "texts", tuple(texts), partial(read_sidecars, path))
    raise WrongUse(f"{path}: a folder without *.parquet, *.tar and *.txt; {_FORMS}")


class CaptionSources:
    """Captions of one or more files or folders, read one after the other.

    Places begin with the name of the file or folder. Of several, the id of each caption begins with the stem of its
    source (``captions_val2017/179765``); ids of images stay as they are, so that captions of one photo in several files
    belong together.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises `WrongUse` for a path that holds no captions, and for two that cannot be told apart."""
        self._each = [caption_source(path) for path in paths]
        for first, second in combinations(self._each, 2):
            shared = {tar.name for tar in first.sized} & {tar.name for tar in second.sized}
            if first.stem == second.stem or shared:
                raise WrongUse(
                    f"{first.path} and {second.path}: both have {min(shared, default=first.stem)!r}, by which captions "
                    "and images are told apart; rename one, or parse folders of img2dataset one by one"
                )

    def read(self) -> Iterator[Read]:
        """Captions and what is left out, in order. Raises `WrongUse` when nothing of a source can be read."""
        for source in self._each:
            name, stem = source.name, f"{source.stem}/" if len(self._each) > 1 else ""
            usable, left_out = False, LeftOut()
            for read in source.read():
                place = f"{name} {read.place}".encode("utf-8", "replace").decode()
                if isinstance(read, Caption):
                    usable = True
                    yield replace(read, caption_id=stem + read.caption_id, place=place)
                else:
                    left_out.add(read.reason, place)
                    yield replace(read, place=place)
            if not usable:
                refuse_unusable(source.path, left_out, _FORMS)

    def digest(self) -> str:
        """Digest of what is read, and of the stems where they are part of it."""
        if len(self._each) == 1:
            return self._each[0].digest()
        return digest([[source.stem, source.digest()] for source in self._each])
