"""Finding videos and images by name or id in one folder of files, of tars, or of both, without ever leaving it."""

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.errors import TwinsetError
from twinset.shards.storage.tar_reader import tar_members

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")

# Errors of the operating system that blame one file. Any other (a full or failing disk, a lost mount, too many open
# files) is trouble of the machine, which another try may not have: it ends the shard instead of rejecting candidates.
FILE_ERRORS = frozenset(
    {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
)


class EscapesRoot(TwinsetError):
    """A path that comes from data points outside the folder that it belongs to."""


def inside(root: Path, relative: str) -> Path:
    """``root / relative``, refused when a path from data is absolute, climbs with ``..`` or holds a NUL.

    Links that the owner of the folder made are followed: only the data is not trusted.
    """
    pure = PurePosixPath(relative)
    if not relative or pure.is_absolute() or ".." in pure.parts or "\0" in relative or "\\" in relative:
        raise EscapesRoot(f"{relative!r} leaves the folder {root}; correct the annotation that names it")
    return root / pure


class Media(Protocol):
    """Finds files by the names that annotations use: for samples, for missing files that appear later, for audits."""

    root: Path

    def size(self, name: str) -> int | None:
        """Bytes of what a name stands for now; None when it is not there."""

    def sha256(self, name: str) -> tuple[str, int] | None:
        """sha256 (hexadecimal) and size in bytes of what a name stands for now; None when it is not there."""


class MediaFolder:
    """A folder of videos or frames, addressed by the names that annotations use."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, name: str) -> Path | None:
        """The file called ``name``, or ``name`` + a video suffix, directly in the folder or in a folder below it."""
        for suffix in ("", *VIDEO_SUFFIXES):
            path = inside(self.root, name + suffix)
            if is_file(path):
                return path
        return self._nested.get(name)

    def size(self, name: str) -> int | None:
        found = self.find(name)
        return found.stat().st_size if found is not None else None

    def sha256(self, name: str) -> tuple[str, int] | None:
        found = self.find(name)
        return sha256_of_file(found) if found is not None else None

    def relative(self, path: Path) -> str:
        """How a found file is recorded: relative to the folder, with '/'."""
        return path.relative_to(self.root).as_posix()

    @cached_property
    def _nested(self) -> dict[str, Path]:
        # YouCook2's own layout is SPLIT/RECIPE/VIDEO.mp4; walked once, and only when a direct look-up failed.
        found: dict[str, Path] = {}
        for folder, file in walk(self.root):
            path = self.root / folder / file
            if path.suffix in VIDEO_SUFFIXES and is_file(path):
                found.setdefault(path.stem, path)
                found.setdefault(path.name, path)
        return found


def walk(root: Path) -> Iterator[tuple[str, str]]:
    """Folder (relative to the root) and name of all files, folders and names in alphabetical order."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        relative = Path(folder).relative_to(root).as_posix()
        for file in sorted(files):
            yield relative, file


def is_file(path: Path) -> bool:
    """Whether it is a regular file that can be reached: no pipe or device, which would be read for ever."""
    try:
        return path.is_file()
    except OSError:  # a name too long, a folder without permission, a loop of links
        return False


IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
COCO_DIGITS = 12  # COCO's file of image 139 is 000000000139.jpg, and was COCO_val2014_000000000139.jpg
COCO_PREFIXES = ("COCO_val2014_", "COCO_train2014_")
TAR = ".tar"
LONGEST_NAME = 4096  # characters, as Linux limits paths; others name no image
DEEPEST = 64  # folders in a name, each of which may be the one that is left out


@dataclass(frozen=True, slots=True)
class StoredImage:
    """The bytes of an image: a file, or a member of a tar.

    name: how it is recorded: relative to the folder with '/', ``TAR/MEMBER`` for a member. path: the file or the tar.
    offset, size: of its bytes in that.
    """

    name: str
    path: Path
    offset: int
    size: int

    def read(self) -> bytes:
        """Its bytes; fewer than `size` where the file was cut short."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            return stream.read(self.size)


class ImageFolder:
    """A folder of images, addressed by the names or ids that annotations and captions use.

    It may hold files, in folders of any depth, and tars such as img2dataset's shards, which are read where they lie.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, name: str) -> StoredImage | None:
        """The image that a name or an id stands for; None when it is not there, and for an URL.

        In this order: the file ``name`` or ``TAR/MEMBER``; with a suffix of images, and as COCO numbers its files,
        where ``name`` has none; as COCO called the same image in 2014 or 2017; the file without some of the name's
        first folders, which this one may lie in; a file of this name, with its folders if it has any, in a folder
        below, the first in alphabetical order; a member of this name in any of the tars, unless the name says in which.
        Raises `EscapesRoot` for a name that leads out.
        """
        if "://" in name or len(name) > LONGEST_NAME or name.count("/") > DEEPEST:
            return None
        inside(self.root, name)
        return next((found for found in self._looked_up(PurePosixPath(name)) if found is not None), None)

    def _looked_up(self, name: PurePosixPath) -> Iterator[StoredImage | None]:
        """What lies at each place where `find` looks, in its order."""
        within, spelled = name.parent.parts, list(_spellings(name.name)) if name.name else []
        for one in spelled:
            yield self._file(name.parent / one)
            yield self._member_of_path(name.parent / one)
        for depth in range(1, len(within) + 1):
            for one in spelled:
                yield self._file(PurePosixPath(*within[depth:], one))
        for one in spelled:
            for folder in self._nested.get(one, ()):
                below = PurePosixPath(folder)
                # One of another folder is another image: many data sets number anew in each.
                if below.parts[len(below.parts) - len(within) :] == within:
                    yield self._file(below / one)
        # A name that says in which tar it is stands in no other.
        if not any(part.endswith(TAR) for part in within):
            yield from (self._member(tar, spelled) for tar in self._tars)

    def size(self, name: str) -> int | None:
        found = self.find(name)
        return found.size if found is not None else None

    def sha256(self, name: str) -> tuple[str, int] | None:
        found = self.find(name)
        if found is None:
            return None
        content = found.read()
        return hashlib.sha256(content).hexdigest(), len(content)

    def _file(self, relative: PurePosixPath) -> StoredImage | None:
        path = inside(self.root, str(relative))
        return StoredImage(str(relative), path, 0, path.stat().st_size) if is_file(path) else None

    def _member_of_path(self, relative: PurePosixPath) -> StoredImage | None:
        """The image of a path that goes through a tar; the tar may lie in a folder below."""
        parts = relative.parts
        for depth, part in enumerate(parts[:-1], 1):
            if part.endswith(TAR):
                tar, member = PurePosixPath(*parts[:depth]), "/".join(parts[depth:])
                if is_file(self.root / tar):
                    return self._member(str(tar), [member])
                nested = (one for one in self._tars if PurePosixPath(one).name == part)
                return next((found for one in nested if (found := self._member(one, [member]))), None)
        return None

    def _member(self, tar: str, names: list[str]) -> StoredImage | None:
        path = inside(self.root, tar)
        try:
            members, end = tar_members(path, IMAGE_SUFFIXES)
        except OSError as error:
            if error.errno not in FILE_ERRORS:
                raise
            return None
        for name in names:
            # A member that is cut short will have the size that its header says once the download is finished.
            if (where := members.find(name)) is not None and sum(where) <= end:
                return StoredImage(f"{tar}/{name}", path, *where)
        return None

    @cached_property
    def _nested(self) -> dict[str, tuple[str, ...]]:
        # Walked once, and only when a direct look-up failed: file name -> folders, one tuple for all files of a folder.
        found: dict[str, tuple[str, ...]] = {}
        alone: dict[str, tuple[str, ...]] = {}
        for folder, file in walk(self.root):
            if file.lower().endswith(IMAGE_SUFFIXES):
                here = alone.setdefault(folder, (folder,))
                found[file] = found[file] + here if file in found else here
        return found

    @cached_property
    def _tars(self) -> list[str]:
        tars = [str(PurePosixPath(folder, file)) for folder, file in walk(self.root) if file.endswith(TAR)]
        return [tar for tar in tars if is_file(self.root / tar)]


def _spellings(name: str) -> Iterator[str]:
    """How the file of a name or id may be called."""
    yield name
    if not name.lower().endswith(IMAGE_SUFFIXES):
        padded = name.zfill(COCO_DIGITS) if name.isascii() and name.isdigit() else name
        for stem in dict.fromkeys((name, padded)):
            for suffix in IMAGE_SUFFIXES:
                yield stem + suffix
                yield stem + suffix.upper()
    stem = name.removesuffix(".jpg")
    for before in COCO_PREFIXES:
        if stem.startswith(before):
            yield f"{stem.removeprefix(before)}.jpg"
        elif stem.isascii() and stem.isdigit():
            yield f"{before}{stem.zfill(COCO_DIGITS)}.jpg"
