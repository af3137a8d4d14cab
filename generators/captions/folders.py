"""Captions in folders, beside their images: tars of img2dataset, any WebDataset, images with texts of their names."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath

from twinset.generators.annotation_files import LONGEST_LINE, Skipped, json_value, text_of
from twinset.generators.captions.tables import (
    CAPTIONS,
    CREDIT,
    LICENCE,
    SOURCE_URL,
    STATUS,
    Read,
    from_fields,
    from_record,
    numbered_rows,
)
from twinset.shards.media.media_folder import IMAGE_SUFFIXES
from twinset.shards.storage.member_headers import member_headers
from twinset.shards.storage.path_ends import walk
from twinset.shards.storage.tar_reader import BrokenTar

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
        for key, sample in groupby(members or (), key=lambda member: member[0]):
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
    texts: dict[str, Path] = {}
    images: dict[str, str] = {}
    for name in sorted(PurePosixPath(*found) for found in walk(folder)):
        path = folder / name
        if path.suffix.lower() == ".txt" and path.is_file():
            texts[str(name.with_suffix(""))] = path
        elif path.suffix.lower() in IMAGE_SUFFIXES:
            images.setdefault(str(name.with_suffix("")), str(name))
    for stem in sorted({*texts, *images}):
        if stem not in texts or stem not in images:
            yield Skipped(stem, "no-caption" if stem in images else "no-image")
            continue
        with texts[stem].open("rb") as stream:
            said = stream.read(LONGEST_LINE).decode("utf-8-sig", "surrogateescape").split("\n")
        for at, line in enumerate(line for line in said if line.strip() or len(said) == 1):
            fields = {"image_id": images[stem], "image": images[stem], "caption": line.strip("\r")}
            yield from_fields(fields, f"{stem}.txt line {at + 1}", f"{stem}#{at}")
