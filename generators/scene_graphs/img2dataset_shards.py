"""Reader of a folder that img2dataset wrote as WebDataset: images in ``00000.tar``, captions in ``00000.parquet``."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from generators.annotation_files import Skipped
from generators.scene_graphs.caption_files import parquet_fields
from generators.scene_graphs.captions import Read, from_fields
from shards.storage.tar_members import HEADER_ERRORS

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".avif")


def shard_stems(folder: Path) -> list[str]:
    """Names of the folder's shards without suffix, in order; empty when it holds no tar."""
    tars = {path.stem for path in folder.glob("*.tar")}
    return sorted(tars | {path.stem for path in folder.glob("*.parquet")}) if tars else []


def read_img2dataset(folder: Path) -> Iterator[Read]:
    """Captions of the images that were downloaded: id of caption and image is img2dataset's key, and the image is at
    ``00000.tar/KEY.jpg`` below the folder. What was not downloaded is left out, and so are unfinished shards."""
    for stem in shard_stems(folder):
        tar, table = folder / f"{stem}.tar", folder / f"{stem}.parquet"
        if not tar.is_file() or not table.is_file():
            yield Skipped(f"{stem}.{'tar' if table.is_file() else 'parquet'}", "unfinished-shard")
            continue
        try:
            images = _images(tar)
        except (*HEADER_ERRORS, OSError):
            yield Skipped(tar.name, "broken-tar")
            continue
        for number, row in enumerate(parquet_fields(table, ("status",)), 1):
            place, key = f"{table.name} row {number}", row.get("key")
            if row.get("status", "success") != "success":
                yield Skipped(place, "not-downloaded")
            elif not isinstance(key, str) or key not in images:
                yield Skipped(place, "no-image")
            else:
                fields = {**row, "image_id": key, "caption_id": key, "image": f"{tar.name}/{images[key]}"}
                yield from_fields(fields, place, key)


def _images(tar: Path) -> dict[str, str]:
    """Names of the images in a tar by key; only its headers are read."""
    found: dict[str, str] = {}
    with tarfile.open(tar, "r:") as members:
        for member in members:
            if member.size < 0:  # tarfile would step back, and read the same headers for ever
                raise tarfile.ReadError(f"{member.name}: negative size")
            key, dot, suffix = member.name.partition(".")
            if member.isfile() and f"{dot}{suffix}".lower() in IMAGE_SUFFIXES:
                found[key] = member.name
            members.members = []  # type: ignore[attr-defined]  # tarfile keeps all that it met
    return found
