"""Unpacking an asset's archive, which comes from a bucket or a mirror that nobody vouches for."""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from pathlib import Path

from manifests.errors import WrongUse
from shards.media.media_folder import EscapesRoot, inside

MAX_FILES = 100
CHUNK = 1 << 20
MAX_BYTES = (
    1 << 28
)  # text of a mesh takes ten times as much memory; the largest asset of Google Scanned Objects is 60 MB unpacked

# Where the files of an asset name other files: the texture in a material, the material in a mesh, the mesh in a URDF.
REFERENCES = {
    ".obj": re.compile(rb"^mtllib[ \t]+(.+?)\s*$", re.M),
    ".mtl": re.compile(rb"^[ \t]*(?:map_\w+|bump|disp|decal|refl|norm)[ \t].*?(\S+)\s*$", re.M | re.I),
    ".urdf": re.compile(rb"filename\s*=\s*[\"']([^\"']*)"),
}


def unpack(archive: Path, asset: str, folder: Path) -> None:
    """Unpack ASSET.tar.gz, flat or with everything in a folder ASSET, into a new folder.

    Raises WrongUse, which names the asset, when the archive is damaged, holds anything but files and folders, would
    write or refers outside its folder, or is larger than 256 MiB or 100 files.
    """
    try:
        with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            members = _checked(tar, asset)
            _read_to_the_end(stream, asset)
            folder.mkdir(parents=True)
            for member in members:
                name = member.name.removeprefix("./").removeprefix(f"{asset}/")
                path = inside(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                if content is None:
                    raise _refused(asset, f"{name} cannot be read")
                path.write_bytes(content.read())
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, UnicodeError) as error:
        raise _refused(asset, f"it is damaged ({error})") from error
    for path in sorted(folder.rglob("*")):
        _check_references(path, asset, folder)


def _checked(tar: tarfile.TarFile, asset: str) -> list[tarfile.TarInfo]:
    """The files of an archive. Sizes are summed while headers are read, so that a bomb is not inflated first."""
    members: list[tarfile.TarInfo] = []
    size = 0
    for member in tar:
        size += member.size
        if len(members) >= MAX_FILES or size > MAX_BYTES:
            raise _refused(asset, f"it holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB")
        if member.isdir():
            continue
        if not member.isreg():
            raise _refused(asset, f"{member.name!r} is a link or a device")
        try:
            inside(Path(), member.name)
        except EscapesRoot as error:
            raise _refused(asset, f"{member.name!r} would be written outside its folder") from error
        members.append(member)
    return members


def _read_to_the_end(stream: gzip.GzipFile, asset: str) -> None:
    """Gzip's checksum is compared at its end only, behind where a tar ends: a flipped bit goes unnoticed without."""
    while stream.read(CHUNK):
        if stream.tell() > 2 * MAX_BYTES:
            raise _refused(asset, f"more than {MAX_BYTES >> 20} MiB follow its last file")


def _check_references(path: Path, asset: str, folder: Path) -> None:
    pattern = REFERENCES.get(path.suffix.lower())
    if pattern is None:
        return
    for reference in pattern.findall(path.read_bytes()):
        try:
            inside(folder, reference.decode())
        except (EscapesRoot, UnicodeError) as error:
            raise _refused(asset, f"{path.name} refers to {reference!r}") from error


def _refused(asset: str, why: str) -> WrongUse:
    return WrongUse(f"archive of the asset {asset!r}: {why}; fetch it again, or leave the asset out")
