"""Local folders that appear complete or not at all, also when two processes make one."""

import contextlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import CACHE_REMEDY, DrawnFolder
from twinset.shards.storage.store import sync


def ensure_drawn(drawn: DrawnFolder) -> Path:
    """A folder that a package draws, drawn first where this machine does not have it yet; complete or not at all.
    Raises `WrongUse`: files are missing from it; the message names the remedy.
    """
    folder = drawn.folder
    if not folder.is_dir():
        with atomic_folder(folder, CACHE_REMEDY) as unfinished:
            drawn.draw(unfinished)
    if missing := next((name for name in drawn.files() if not (folder / name).is_file()), None):
        raise WrongUse(f"{folder} lacks {missing}; remove this folder, and the same command draws it again")
    return folder


@contextlib.contextmanager
def atomic_folder(folder: Path, remedy: str) -> Iterator[Path]:
    """An empty folder to write into, which becomes ``folder`` when all is written, and is removed after a failure.

    Two processes may do so at once if both write the same bytes: the first to finish wins. What killed ones left is
    removed. An OSError gets a note with the remedy.
    """
    try:
        with folder_beside(folder) as unfinished:
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
        error.add_note(remedy)
        raise


@contextlib.contextmanager
def folder_beside(folder: Path) -> Iterator[Path]:
    """A new, empty folder beside ``folder``, removed at the end if it is still there, by the next process after a kill.

    Folders above it are made.
    """
    owner = f".{folder.name}-{socket.gethostname()}."
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent, owner)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{owner}{os.getpid()}.", dir=folder.parent))
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _sweep(parent: Path, owner: str) -> None:
    for name in os.listdir(parent):
        left = re.fullmatch(re.escape(owner) + r"(\d+)\.[^.]+", name)
        if left and not psutil.pid_exists(int(left[1])):
            shutil.rmtree(parent / name, ignore_errors=True)
