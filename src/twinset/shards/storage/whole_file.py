"""Local files and folders that are there whole or not at all, also when two processes make one."""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import local_folder_of
from twinset.shards.storage.spool import remove_left
from twinset.shards.storage.store import sync

LONGEST = 100  # bytes; a longer name is replaced by its digest: a file system may limit names to 255 bytes
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``, which takes its place when the block ends without an error.

    The name is this process's own, so that two writers of one file disturb each other no more than one after the other.
    What killed processes of this machine left of the same file is removed. Folders above it are made. A block that
    fails or writes nothing leaves the file as it was.
    """
    name = os.fsencode(path.name)
    shown = path.name if len(name) <= LONGEST else hashlib.sha256(name).hexdigest()
    prefix = f".{shown}.{socket.gethostname()}."
    beside = path.with_name(f"{prefix}{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for entry in os.listdir(path.parent):
            left = re.fullmatch(re.escape(prefix) + r"(\d{1,9})", entry)
            if left and not psutil.pid_exists(int(left[1])):
                (path.parent / entry).unlink(missing_ok=True)
        try:
            yield beside
            if beside.exists():
                with beside.open("rb+") as stream:
                    os.fsync(stream.fileno())
                os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in _CANNOT_WRITE:
            error.add_note(f"{path}: free some room, or name another folder, and run the same command again")
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text whole, as UTF-8; half a surrogate pair becomes ``?``."""
    with whole_file(path) as beside:
        beside.write_bytes(text.encode("utf-8", "replace"))


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
    remove_left(folder.parent, os.listdir(folder.parent), owner)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{owner}{os.getpid()}.", dir=folder.parent))
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextlib.contextmanager
def new_folder(to: str | Path, option: str) -> Iterator[Path]:
    """A sibling of ``to`` to write into, which takes its place when the block ends without an error.

    option: that named ``to``, for messages. Raises `WrongUse`: it exists and is not an empty folder, or is a URL.
    """
    to = Path(os.path.abspath(local_folder_of(to)))
    try:
        above = next((one for one in to.parents if one.exists() or one.is_symlink()), to)
        if to.is_symlink() or not above.is_dir():
            found = to if to.is_symlink() else above
            raise WrongUse(f"{found}: is a link or not a folder; name another {option}, a new folder")
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            raise WrongUse(f"{to}: exists and is not an empty folder; name another {option}, or remove it")
        if to.exists():  # tried before the work: a folder where something is mounted cannot be replaced
            aside = to.with_name(f".{to.name[:200]}.{os.getpid()}")
            to.rename(aside)
            aside.rename(to)
    except OSError as error:
        raise WrongUse(
            f"{to}: cannot be made ({error.strerror}); name another {option}, such as a folder in it"
        ) from error
    with contextlib.ExitStack() as stack:
        try:
            unfinished = stack.enter_context(folder_beside(to))
        except OSError as error:
            raise WrongUse(f"{to}: cannot be made ({error.strerror}); name another {option}") from error
        try:
            yield unfinished
        except OSError as error:
            error.add_note(f"{to}: is not written; free some room, or name another {option}, and run the command again")
            raise
        unfinished.chmod(0o755)
        if to.exists():
            to.rmdir()
        unfinished.rename(to)
