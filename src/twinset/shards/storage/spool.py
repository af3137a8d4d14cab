"""Where files lie until they are whole: in folders of the process that writes them, which are removed after a kill."""

import contextlib
import errno
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from twinset.contracts.errors import WrongUse

SPOOL = "_spool"
_HOST = f"{socket.gethostname()}."
HIDDEN = ".twinset-"  # with what the names of folders beside finished files begin
ATTEMPTS = 100  # to create a folder below one that another process's sweep removes when it is empty


class Spool:
    """Folders of unfinished files, one for each use, named after host and process.

    Those of a local store lie inside it, so that finished files can be renamed to their places; those of an object
    store lie in the temporary folder.
    """

    def __init__(self, store: Path | None) -> None:
        """store: folder of a local store; None for an object store."""
        self._store = store
        self.parent = Path(tempfile.gettempdir()) if store is None else store / SPOOL
        #: Of the names of this machine's folders, before the number of their process.
        self.prefix = f"twinset-{_HOST}" if store is None else _HOST

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder, removed at the end; an OSError says what to do when the store cannot be written."""
        if self._store is not None:
            refuse_link(self.parent)
        try:
            with _new_folder(self.parent, self.prefix) as folder:
                yield folder
        except OSError as error:
            raise self._explained(error) from error

    def sweep(self) -> None:
        """Remove what killed processes of this machine left."""
        if self._store is None:
            _sweep(self.parent, self.prefix)
        elif not self.parent.is_symlink():
            _sweep(self.parent, self.prefix)
            with contextlib.suppress(OSError):
                self.parent.rmdir()

    def _explained(self, error: OSError) -> OSError:
        """The same error and what to do about it, if it is about writing here."""
        place = self._store or self.parent
        named = error.filename2 or error.filename  # of a file that cannot be moved, where it should go
        path = place if named is None else Path(os.fsdecode(named))
        elsewhere = not (path.is_relative_to(place) or place.is_relative_to(path))  # a folder above it cannot be made
        # A failed write names no file. During a render or the unpacking of an asset it is the temporary folder that is
        # full, not the store.
        here = "here or where TMPDIR points" if self._store is not None else "or set TMPDIR to a larger folder"
        full = f"free some room, {here}, and run the same command again, finished shards stay"
        remedy = {
            errno.ENOSPC: f"the disk is full, or holds as many files as it can; {full}",
            errno.EDQUOT: f"the disk quota is used up; {full}",
            errno.EROFS: "the file system is read-only; name another --out, or work on a copy",
            errno.EACCES: "no permission to write; correct the permissions, or name another --out",
            errno.EPERM: "no permission to write; correct the permissions, or name another --out",
            errno.ENOTDIR: "a part of this path is a file; name another --out",
            errno.EISDIR: "a folder lies where a file belongs; remove it and run the same command again",
            errno.EEXIST: "a part of this path is a file; name another --out",
        }.get(error.errno or 0)
        if remedy is None or elsewhere or str(place) in str(error.strerror):
            return error
        # Which temporary file met a full disk helps nobody, and would make as many messages as there are shards.
        blamed = () if error.errno in (errno.ENOSPC, errno.EDQUOT) else (named,)
        return type(error)(error.errno, f"{error.strerror} ({place}): {remedy}", *blamed)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder in the temporary folder, removed at the end, after a kill by the next process that asks for one."""
    spool = Spool(None)
    spool.sweep()
    with spool.folder() as folder:
        yield folder


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Where to write what will take the place of a file or a folder: a path in a new folder beside it.

    The folder is removed at the end, after a kill by the next process that writes there. Folders above it are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent, HIDDEN + _HOST)
    with _new_folder(path.parent, HIDDEN + _HOST) as folder:
        yield folder / path.name


@contextlib.contextmanager
def _new_folder(parent: Path, prefix: str) -> Iterator[Path]:
    for attempt in range(ATTEMPTS):
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}.", dir=parent))
            break
        except (FileNotFoundError, FileExistsError):
            # Another process's sweep can remove the empty parent at any time: before mkdtemp, or while mkdir looks at
            # what is in its way.
            if attempt == ATTEMPTS - 1:
                raise
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path, prefix: str) -> None:
    """Remove the folders that killed processes of this machine left: those called ``PREFIX`` + ``PID.…``."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(parent):
            left = re.fullmatch(re.escape(prefix) + r"(\d+)\.[^.]+", name)
            if left and not is_running(int(left[1])):
                shutil.rmtree(parent / name, ignore_errors=True)


def is_running(process: int) -> bool:
    """Whether this machine has a process of a number, which a file said and may be any; not one that has ended."""
    with contextlib.suppress(psutil.NoSuchProcess, ValueError, OverflowError):
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE  # in a container nobody may wait for those
    return False


def refuse_link(folder: Path) -> None:
    """Raise `WrongUse` where a folder below OUT is a link: what is written there would land outside of OUT."""
    if folder.is_symlink():
        raise WrongUse(
            f"{folder}: a link to {os.readlink(folder)}; nothing is written through a link. Remove it, or put the "
            "folder in its place, and run the same command again"
        )


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
