"""Captions as other people's files and folders hold them: what each path holds, one reader a form, and its digest."""

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, groupby, islice
from pathlib import Path, PurePosixPath
from typing import Any

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import NOTHING, Terms, coco_terms
from twinset.contracts.references import reasons_beside
from twinset.generators.annotation_files import (
    LINE_REASONS,
    LONGEST_LINE,
    NAMED_DELIMITER,
    TERM_REASONS,
    Skipped,
    checked,
    delimiter_of,
    json_value,
    lines,
    read_json,
    records,
    text_of,
)
from twinset.shards.media.media_folder import IMAGE_SUFFIXES
from twinset.shards.storage.member_headers import member_headers
from twinset.shards.storage.path_ends import walk
from twinset.shards.storage.tar_reader import BrokenTar

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
        pictured = any(name in about for name in (*IMAGE, *IMAGE_ID))
        for number, caption in enumerate(fields[several]):
            said = caption if isinstance(caption, dict) else {"caption": caption}
            said = {"caption": said.get("raw", said.get("phrase")), **said}
            if pictured:  # else a caption could name another image than the record does
                said = {name: value for name, value in said.items() if name not in (*IMAGE, *IMAGE_ID)}
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


def read_rows(*paths: Path) -> Iterator[Read]:
    """Tables of text with names of columns, JSON lines, and Parquet, also of several files; records as `from_record`.

    The id of a caption is its line's or row's number, where it has no other.
    """
    for path in paths:
        file, stem = (f"{path.name} ", f"{path.stem}-") if len(paths) > 1 else ("", "")
        for noun, number, record in numbered_rows(path):
            yield from from_record(record, f"{file}{noun} {number}", f"{stem}{number:09d}")


FLICKR_ID = re.compile(r"(?P<image>.+)#\d+")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://\S+")

#: What a line says, by the name of its file and its number; or why it says nothing.
Parse = Callable[[str, str, int], Mapping[str, str] | str]


def has_header(line: str) -> bool:
    """Whether a table's first line names captions beside other columns, or says what is between these."""
    names = next(csv.reader([line[:LONGEST_CAPTION]], delimiter=delimiter_of(line)), []) if "\r" not in line else []
    known = len(names) > 1 and {*CAPTION} & {name.strip().lower() for name in names}
    return bool(known or NAMED_DELIMITER.fullmatch(line))


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
    "captions are a TSV of caption and url, a table with names of columns, a Flickr token file, SCAN's _caps.txt, "
    ".jsonl, .parquet, a .json of COCO {images, annotations}, Karpathy {images: [{filename, split, sentences}]}, "
    "Visual Genome [{id, regions}], SBU {image_urls, captions} or a list of objects with caption and image, a folder "
    "of Parquet files, of tars, or of images with texts beside them"
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
            raise WrongUse(f"{path}: not captions in a form that is known; {_FORMS}")
    except (KeyError, TypeError, ValueError) as error:
        problem = f"not captions as its form has them ({type(error).__name__}: {error})"
        raise WrongUse(f"{path}: {problem}; {_FORMS}") from error


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


_TEXTS = (".txt", ".json")
_TERMS = {*LICENCE, *CREDIT, *SOURCE_URL, "split"}
_Member = tuple[str, str, str, bytes]  # key, suffix, name, and content of a text


def read_img2dataset(folder: Path) -> Iterator[Read]:
    """A folder that img2dataset wrote as WebDataset: images in ``00000.tar``, captions in ``00000.parquet``.

    Captions of the images that were downloaded: id of caption and image is img2dataset's key, and the image is at
    ``00000.tar/KEY.jpg`` below the folder. What was not downloaded is left out, and so are unfinished shards.
    """
    for stem in sorted({path.stem for pattern in ("*.tar", "*.parquet") for path in folder.glob(pattern)}):
        tar, table = folder / f"{stem}.tar", folder / f"{stem}.parquet"
        if not tar.is_file() or not table.is_file():
            yield Skipped(f"{stem}.{'tar' if table.is_file() else 'parquet'}", "unfinished-shard")
        elif (members := _members(tar, IMAGE_SUFFIXES)) is None:
            yield Skipped(tar.name, "broken-tar")
        else:
            images = {key: name for key, suffix, name, _ in members if suffix in IMAGE_SUFFIXES}
            for _, number, row in numbered_rows(table):
                place, key = f"{table.name} row {number}", text_of(row.get("key"))
                if key not in images and row.get("status") not in STATUS:
                    yield Skipped(place, "no-image")
                else:
                    fields = {**row, "image_id": key, "caption_id": key, "image": f"{tar.name}/{images.get(key)}"}
                    yield from from_record(fields, place, key)


def _members(tar: Path, suffixes: tuple[str, ...]) -> list[_Member] | None:
    """The members of a tar with some suffixes; None where it is broken: none of it is used."""
    found = list[_Member]()
    try:
        with tar.open("rb") as stream:
            for name, offset, size in (headers := member_headers(stream, tar.name)):
                folder, _, base = name.rpartition("/")
                stem, _, rest = base.partition(".")
                suffix = f".{rest.lower()}"
                if stem and suffix.endswith(suffixes):
                    content = headers.content(offset, min(size, LONGEST_LINE)) if suffix.endswith(_TEXTS) else b""
                    found.append((f"{folder}/{stem}".lstrip("/"), suffix, name, content))
    except (BrokenTar, OSError):
        return None
    return found


def read_webdataset(*tars: Path) -> Iterator[Read]:
    """Tars of WebDataset: of each key an image, and its caption in ``KEY.txt`` or in a field of ``KEY.json``.

    Ids of caption and image are ``TAR/KEY``, as the same key can occur in several tars.
    """
    for tar in tars:
        if (members := _members(tar, (*IMAGE_SUFFIXES, *_TEXTS))) is None:
            yield Skipped(tar.name, "broken-tar")
        keys = set[str]()
        for key, sample in groupby(members or (), key=lambda member: member[0]):
            if key in keys:
                yield Skipped(f"{tar.name} {key}", "several-fields")
            else:
                keys.add(key)
                yield from _sample(tar, key, list(sample))


def _sample(tar: Path, key: str, members: list[_Member]) -> Iterator[Read]:
    place = f"{tar.name} {key}"
    images, texts = _of(members, IMAGE_SUFFIXES), _of(members, _TEXTS)
    if images is None or texts is None:
        yield Skipped(place, "several-fields")
    elif not images:
        yield Skipped(place, "no-image")
    else:
        fields = {"image_id": f"{tar.stem}/{key}", "image": f"{tar.name}/{images[0][2]}"}
        content = {f".{suffix.rpartition('.')[2]}": content for _, suffix, _, content in texts}
        record = json_value(content.get(".json", b"{}"), place)
        if isinstance(record, dict):
            known = _TERMS if ".txt" in content else {*CAPTIONS, *_TERMS}
            record = {name: value for name, value in record.items() if name.lower() in known} | fields
            if ".txt" in content:
                record["caption"] = content[".txt"].decode("utf-8-sig", "surrogateescape").strip()
            elif not {*CAPTIONS} & {*map(str.lower, record)}:
                record = Skipped(place, "no-caption")
        yield from from_record(record, place, f"{tar.stem}/{key}")


def _of(members: list[_Member], suffixes: tuple[str, ...]) -> list[_Member] | None:
    """Those with some suffixes, or else one such as ``input.jpg``; None where there are several of one."""
    plain = [member for member in members if member[1] in suffixes]
    dotted = [member for member in members if member[1].endswith(suffixes)]
    if len({suffix for _, suffix, _, _ in plain}) < len(plain) or (not plain and len(dotted) > 1):
        return None
    return plain or dotted


def read_sidecars(folder: Path) -> Iterator[Read]:
    """A folder of images, each beside a text of its name: every line of ``a/b.txt`` is a caption of ``a/b.jpg``."""
    texts, images = dict[str, Path](), dict[str, str]()
    for name in sorted(PurePosixPath(*found) for found in walk(folder)):
        if name.suffix.lower() == ".txt" and (folder / name).is_file():
            if texts.setdefault(str(name.with_suffix("")), folder / name) != folder / name:
                yield Skipped(str(name), "several-fields")
        elif name.suffix.lower() not in IMAGE_SUFFIXES:
            continue
        elif images.setdefault(str(name.with_suffix("")), str(name)) != str(name):
            yield Skipped(str(name), "several-fields")
    for stem in sorted({*texts, *images}):
        if stem not in texts or stem not in images:
            yield Skipped(stem, "no-caption" if stem in images else "no-image")
            continue
        with texts[stem].open("rb") as stream:
            content = stream.read(LONGEST_LINE + 1)
        if len(content) > LONGEST_LINE or not content.strip():
            yield Skipped(f"{stem}.txt line 1", "too-long" if content.strip() else "empty-caption")
            continue
        said = content.decode("utf-8-sig", "surrogateescape").split("\n")
        for at, line in enumerate(line for line in said if line.strip()):
            fields = {"image_id": images[stem], "image": images[stem], "caption": line.strip("\r")}
            yield from_fields(fields, f"{stem}.txt line {at + 1}", f"{stem}#{at}")


#: Kind of a file by its suffix, without that of compression. Digests of stages have this word, "coco" for any JSON.
_KINDS = {
    **{".parquet": "parquet", ".json": "coco", ".csv": "csv"},
    **dict.fromkeys((".jsonl", ".ndjson"), "json-lines"),
    **dict.fromkeys((".tsv", ".txt", ".token"), "tsv"),
}
FIVE_LINES = "_caps.txt"  # end of the names of SCAN's files
SNIFFED = 50  # lines that tell a token file from a TSV

_FIELDS = f"{' or '.join(CAPTION)}, and {' or '.join(IMAGE_ID)}"


@dataclass(frozen=True, slots=True)
class CaptionSource:
    """One file or folder of captions.

    files: what is read whole and hashed; sized: tars, of which only the names are read. read: gives captions and what
    is left out, in the order of the files; memory does not grow with their number.
    """

    path: Path
    kind: str
    files: tuple[Path, ...]
    sized: tuple[Path, ...]
    read: Callable[[], Iterator[Read]]

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


class CaptionSources:
    """Captions of one or more files or folders, read one after the other.

    Places begin with the name of the file or folder. Of several, the id of each caption begins with the stem of its
    source (``captions_val2017/179765``); ids of images stay as they are, so that captions of one photo in several files
    belong together.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises `WrongUse` for a path that holds no captions, and for two that cannot be told apart."""
        self.each = tuple(caption_source(path) for path in paths)
        for one, other in combinations(self.each, 2):
            if one.stem == other.stem:
                raise WrongUse(
                    f"{one.path} and {other.path}: both are called {one.stem!r}, with which the ids of their captions "
                    "would begin; name each file once, or rename one"
                )
            if shared := sorted({tar.name for tar in one.sized} & {tar.name for tar in other.sized}):
                raise WrongUse(
                    f"{one.path} and {other.path}: both have {shared[0]}, so that one key of img2dataset stands for an "
                    "image of each; parse each into a folder of its own"
                )

    def read(self) -> Iterator[Read]:
        """Captions and what is left out, in order. Raises `WrongUse` when nothing of a source can be read."""
        for source in self.each:
            name = source.name  # asked for once: it looks at the current folder
            stem = f"{source.stem}/" if len(self.each) > 1 else ""
            captions, left_out, first = 0, 0, ""
            for read in source.read():
                place = f"{name} {read.place}".encode("utf-8", "replace").decode()
                if isinstance(read, Caption):
                    captions += 1
                    yield replace(read, caption_id=stem + read.caption_id, place=place)
                else:
                    left_out += 1
                    first = first or f", first {read.place}: {read.reason}, {CAPTION_REASONS[read.reason]}"
                    yield replace(read, place=place)
            if not captions:
                kind = "json" if source.kind == "coco" else source.kind
                raise WrongUse(
                    f"{source.path}: no caption in it can be read as {kind} ({left_out} lines or rows left out"
                    f"{first}). Is it another kind of file, or cut off? Fields of records are called {_FIELDS}"
                )

    def digest(self) -> str:
        """Digest of what is read, and of the stems where they are part of it."""
        if len(self.each) == 1:
            return self.each[0].digest()
        return digest([[source.stem, source.digest()] for source in self.each])


def caption_source(path: Path) -> CaptionSource:
    """The captions at a path, by its suffix and, for text, its first lines; raises `WrongUse` when there are none."""
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise WrongUse(f"{path}: no such file; name the captions: {_FORMS}")
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    if (kind := _KINDS.get(suffix, "")) == "":
        raise WrongUse(f"{path}: captions of an unknown kind ({suffix or 'no suffix'}); {_FORMS}")
    reader: Callable[[Path], Iterator[Read]] = read_json_captions if kind == "coco" else read_rows
    if name.endswith(FIVE_LINES):
        kind, reader = "five-lines", partial(read_lines, five_lines)
    elif kind == "tsv":
        first = [line for _, line in islice(lines(path), SNIFFED) if isinstance(line, str)]
        if sum(bool(FLICKR_ID.fullmatch(line.partition("\t")[0])) for line in first) * 2 > len(first):
            kind, reader = "flickr-tokens", partial(read_lines, flickr_tokens)
        elif not first or not has_header(first[0]):
            reader = partial(read_lines, conceptual_captions)
    return CaptionSource(path, kind, (path,), (), partial(reader, path))


def _folder(path: Path) -> CaptionSource:
    tables, tars = (
        tuple(file for file in sorted(path.glob(pattern)) if file.is_file())  # no pipe, which never ends
        for pattern in ("*.parquet", "*.tar")
    )
    if tables and any(path.glob("*.tar")):
        return CaptionSource(path, "img2dataset", tables, tars, partial(read_img2dataset, path))
    if tars:
        return CaptionSource(path, "webdataset", tars, (), partial(read_webdataset, *tars))
    if tables:
        return CaptionSource(path, "parquet", tables, (), partial(read_rows, *tables))
    texts = sorted(path / folder / file for folder, file in walk(path) if file.lower().endswith(".txt"))
    if texts := [file for file in texts if file.is_file()]:
        return CaptionSource(path, "texts", tuple(texts), (), partial(read_sidecars, path))
    raise WrongUse(f"{path}: a folder without *.parquet, *.tar and *.txt; {_FORMS}")
