"""Folders of what twinset draws itself: each appears complete or not at all, whoever else draws it meanwhile."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to draw into, which becomes ``folder`` when all is drawn, and goes when drawing fails.

    Two processes may do so at once, if both draw the same bytes: the first to finish wins.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield unfinished
        for path in sorted(unfinished.rglob("*")):
            _sync(path)
        unfinished.chmod(0o755)  # mkdtemp's folders are private; other users' workers may read this one
        _sync(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        _sync(folder.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
