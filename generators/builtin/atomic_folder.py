"""Folders of what twinset makes itself: each appears complete or not at all, also when two processes make it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from shards.storage.store import sync

REMEDY = "set TWINSET_CACHE to a folder that can be written and has 100 MB of room, and run the same command again"


@contextlib.contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to write into, which becomes ``folder`` when all is written, and is removed after a failure.

    Two processes may do so at once if both write the same bytes: the first to finish wins. What killed ones left is
    removed. An OSError gets a note with the remedy.
    """
    owner = f".{folder.name}-{socket.gethostname()}."
    unfinished: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder.parent, owner)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{owner}{os.getpid()}.", dir=folder.parent))
        yield unfinished
        for path in sorted(unfinished.rglob("*")):
            sync(path)
        unfinished.chmod(0o755)  # mkdtemp's folders are private; other users' workers may read this one
        sync(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        sync(folder.parent)
    except OSError as error:
        error.add_note(REMEDY)
        raise
    finally:
        if unfinished is not None:
            shutil.rmtree(unfinished, ignore_errors=True)


def _sweep(parent: Path, owner: str) -> None:
    for name in os.listdir(parent):
        left = re.fullmatch(re.escape(owner) + r"(\d+)\.[^.]+", name)
        if left and not psutil.pid_exists(int(left[1])):
            shutil.rmtree(parent / name, ignore_errors=True)
