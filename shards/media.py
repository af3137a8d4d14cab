"""Finding media files by name inside one folder, without ever leaving it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path, PurePosixPath

from manifests.errors import TwinsetError
from manifests.source_settings import Source

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")


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


class MediaFolder:
    """A folder of videos or frames, addressed by the names that annotations use."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, name: str) -> Path | None:
        """The file called ``name``, or ``name`` + a video suffix, directly in the folder or in a folder below it."""
        for suffix in ("", *VIDEO_SUFFIXES):
            path = inside(self.root, name + suffix)
            if _is_file(path):
                return path
        return self._nested.get(name)

    def relative(self, path: Path) -> str:
        """How a found file is recorded: relative to the folder, with '/'."""
        return path.relative_to(self.root).as_posix()

    @cached_property
    def _nested(self) -> dict[str, Path]:
        # YouCook2's own layout is SPLIT/RECIPE/VIDEO.mp4; walked once, and only when a direct look-up failed.
        found: dict[str, Path] = {}
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for file in sorted(files):
                path = Path(folder, file)
                if path.suffix in VIDEO_SUFFIXES and _is_file(path):
                    found.setdefault(path.stem, path)
                    found.setdefault(path.name, path)
        return found


def media_of(source: Source) -> MediaFolder | None:
    """The folder of the files that a source's samples are made from, if it is on this machine."""
    return MediaFolder(source.media_root) if source.media_root is not None else None


def _is_file(path: Path) -> bool:
    """Whether it is a regular file that can be reached: no pipe or device, which would be read for ever."""
    try:
        return path.is_file()
    except OSError:  # a name too long, a folder without permission, a loop of links
        return False
