"""Walking through a folder and the folders that it links to."""

import os
from collections.abc import Iterator
from pathlib import Path


def walk(root: Path) -> Iterator[tuple[str, str]]:
    """Folder (relative to the root) and name of all files, folders and names in alphabetical order.

    Links to folders elsewhere are followed; none is walked twice, so that a loop of links ends.
    """
    home, walked = os.path.realpath(root), set[tuple[int, int]]()

    def is_new(folder: str) -> bool:
        if os.path.islink(folder) and Path(os.path.realpath(folder)).is_relative_to(home):
            return False  # walked by its own path
        status = os.stat(folder)
        new = (status.st_dev, status.st_ino) not in walked
        walked.add((status.st_dev, status.st_ino))
        return new

    for folder, folders, files in os.walk(root, followlinks=True):
        if not walked:
            is_new(folder)
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
