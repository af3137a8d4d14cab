"""Finding media files by name inside one folder, without ever leaving it."""

import errno
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.errors import TwinsetError

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
        """As `Media.size`."""
        found = self.find(name)
        return found.stat().st_size if found is not None else None

    def sha256(self, name: str) -> tuple[str, int] | None:
        """As `Media.sha256`."""
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
