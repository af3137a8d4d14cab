"""Paths of files: walked, and sorted so that those that end in a name are found, ``a/val/000.png`` by ``val/000.png``.

A key is the path's parts from the last to the first, each followed by ``/``: names are composed (Unicode's NFC) and the
suffix is in small letters, as a name may come from another system than its file. If the parts do not give back the
path, the path follows after a NUL.
"""

import os
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray


def end_of(name: str) -> bytes:
    """With what the keys begin of all paths that end in a name; empty for no path."""
    path = PurePosixPath(unicodedata.normalize("NFC", name))
    parts = path.with_suffix(path.suffix.lower()).parts if path.name else ()
    return "".join(f"{part}/" for part in reversed(parts)).encode("utf-8", "surrogateescape")


def key_of(path: str) -> bytes:
    """The key of a path."""
    key = end_of(path)
    return key if path_of(key) == path else key + b"\0" + path.encode("utf-8", "surrogateescape")


def path_of(key: bytes) -> str:
    """The path of a key."""
    key, _, path = key.partition(b"\0")
    return (path or b"/".join(reversed(key[:-1].split(b"/")))).decode("utf-8", "surrogateescape")


def ending_in(name: str, keys: Sequence[bytes] | NDArray[np.bytes_]) -> range:
    """The places in sorted keys of the paths that end in a name."""
    end = end_of(name)
    return range(bisect_left(keys, end), bisect_left(keys, end[:-1] + b"0")) if end else range(0)  # 0 is next to /


def walk(root: Path) -> Iterator[tuple[str, str]]:
    """Folder (relative to the root) and name of all files, folders and names in alphabetical order.

    Links to folders elsewhere are followed; none is walked twice, so that a loop of links ends.
    """
    home = os.path.realpath(root)
    walked = {home}

    def is_new(folder: str) -> bool:
        real = os.path.realpath(folder)
        within = os.path.islink(folder) and Path(real).is_relative_to(home)  # walked by its own path
        if new := real not in walked and not within:
            walked.add(real)
        return new

    for folder, folders, files in os.walk(root, followlinks=True):
        folders[:] = sorted(name for name in folders if is_new(os.path.join(folder, name)))
        relative = Path(folder).relative_to(root).as_posix()
        for file in sorted(files):
            yield relative, file


def is_file(path: Path) -> bool:
    """Whether it is a regular file that can be reached: no pipe or device, which would be read for ever."""
    try:
        return path.is_file()
    except OSError:  # a name too long, a folder without permission, a loop of links
        return False
