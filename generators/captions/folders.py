"""Captions in folders, beside their images: tars of img2dataset, any WebDataset, images with texts of their names."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath

from twinset.generators.annotation_files import LONGEST_LINE, RepeatedKey, Skipped, json_value, text_of
from twinset.generators.captions.tables import (
    CAPTIONS,
    CREDIT,
    LICENCE,
    SOURCE_URL,
    STATUS,
    Read,
    from_fields,
    from_record,
    parquet_fields,
)
from twinset.shards.media.media_folder import IMAGE_SUFFIXES
from twinset.shards.storage.member_headers import MemberHeaders, member_headers
from twinset.shards.storage.path_ends import walk
from twinset.shards.storage.tar_reader import BrokenTar

TEXT_SUFFIXES = (".txt", ".json")


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
        except (BrokenTar, OSError):
            yield Skipped(tar.name, "broken-tar")
            continue
        for number, row in enumerate(parquet_fields(table), 1):
            place, key = f"{table.name} row {number}", text_of(row.get("key"))
            if key not in images and row.get("status") not in STATUS:
                yield Skipped(place, "no-image")
            else:
                fields = {**row, "image_id": key, "caption_id": key, "image": f"{tar.name}/{images.get(key)}"}
                yield from from_record(fields, place, key)


def _images(tar: Path) -> dict[str, str]:
    """Names of the images in a tar by key; only its headers are read."""
    found: dict[str, str] = {}
    with tar.open("rb") as stream:
        for name, _, _ in member_headers(stream, tar.name):
            key, dot, suffix = name.partition(".")
            if f"{dot}{suffix}".lower() in IMAGE_SUFFIXES:
                found[key] = name
    return found


def read_webdataset(*tars: Path) -> Iterator[Read]:
    """Tars of WebDataset: of each key an image, and its caption in ``KEY.txt`` or in a field of ``KEY.json``.

    Ids of caption and image are ``TAR/KEY``, as the same key can occur in several tars.
    """
    for tar in tars:
        try:
            with tar.open("rb") as stream:
                parts = list(_parts(member_headers(stream, tar.name)))  # all or none of a tar
        except (BrokenTar, OSError):
            yield Skipped(tar.name, "broken-tar")
            continue
        for key, members in groupby(parts, key=lambda one: one[0]):
            fields = [(suffix, (name, content)) for _, suffix, name, content in members]
            if len(sample := dict(fields)) < len(fields):
                yield Skipped(f"{tar.name} {key}", "several-fields")
            else:
                yield from _sample(tar, key, sample)


def _parts(headers: MemberHeaders) -> Iterator[tuple[str, str, str, bytes]]:
    """Key, suffix, name and, of texts, content of each image and text."""
    for name, offset, size in headers:
        folder, _, base = name.rpartition("/")
        stem, _, rest = base.partition(".")
        suffix = f".{rest.lower()}"
        if stem and suffix.endswith((*IMAGE_SUFFIXES, *TEXT_SUFFIXES)):
            content = headers.content(offset, min(size, LONGEST_LINE)) if suffix.endswith(TEXT_SUFFIXES) else b""
            yield f"{folder}/{stem}".lstrip("/"), suffix, name, content


def _sample(tar: Path, key: str, parts: dict[str, tuple[str, bytes]]) -> Iterator[Read]:
    place = f"{tar.name} {key}"
    for suffixes in (IMAGE_SUFFIXES, TEXT_SUFFIXES):
        dotted = [suffix for suffix in parts if suffix.endswith(suffixes)]  # such as input.jpg
        if dotted and not parts.keys() & {*suffixes}:
            if len(dotted) > 1:
                yield Skipped(place, "several-fields")
                return
            parts[f".{dotted[0].rpartition('.')[2]}"] = parts[dotted[0]]
    image = next((name for suffix, (name, _) in parts.items() if suffix in IMAGE_SUFFIXES), None)
    try:
        described = json_value(parts[".json"][1]) if ".json" in parts else {}
        caption = {"caption": parts[".txt"][1].decode("utf-8-sig").strip()} if ".txt" in parts else {}
    except (ValueError, RecursionError, RepeatedKey) as error:
        reasons = {UnicodeError: "not-utf-8", RepeatedKey: "repeated-key"}
        yield Skipped(place, next((reasons[kind] for kind in reasons if isinstance(error, kind)), "not-json"))
        return
    if image is None:
        yield Skipped(place, "no-image")
    elif not isinstance(described, dict):
        yield Skipped(place, "no-object")
    elif not caption and not {*CAPTIONS} & {*map(str.lower, described)}:
        yield Skipped(place, "no-caption")
    else:
        known = (*(() if caption else CAPTIONS), *LICENCE, *CREDIT, *SOURCE_URL, "split")
        named = {name: value for name, value in described.items() if name.lower() in known}
        named |= {"image_id": f"{tar.stem}/{key}", "image": f"{tar.name}/{image}", **caption}
        yield from from_record(named, place, f"{tar.stem}/{key}")


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
        try:
            with texts[stem].open("rb") as stream:
                said = stream.read(LONGEST_LINE).decode("utf-8-sig").split("\n")
        except UnicodeDecodeError:
            yield Skipped(f"{stem}.txt", "not-utf-8")
            continue
        for at, line in enumerate(line for line in said if line.strip() or len(said) == 1):
            fields = {"image_id": images[stem], "image": images[stem], "caption": line.strip("\r")}
            yield from_fields(fields, f"{stem}.txt line {at + 1}", f"{stem}#{at}")
