"""Where unfinished files lie, and what to do when the disk does not take them."""

import contextlib
import errno
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from twinset.contracts.errors import WrongUse

SPOOL = "_spool"
ATTEMPTS = 10  # to create a folder below one that another process's sweep removes when it is empty


class Spool:
    """Folders of unfinished files, one for each use, named after host and process.

    Those of a local store lie inside it, so that finished files can be renamed to their places; those of an object
    store lie in the temporary folder.
    """

    def __init__(self, store: Path | None) -> None:
        """store: folder of a local store; None for an object store."""
        self._store = store
        #: Of the names of this machine's folders, before the number of their process.
        self.prefix = f"{'twinset-' if store is None else ''}{socket.gethostname()}."

    @property
    def parent(self) -> Path:
        """The folder that the spool's folders lie in."""
        return Path(tempfile.gettempdir()) if self._store is None else self._store / SPOOL

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A new folder, removed at the end; an OSError says what to do when the store cannot be written."""
        try:
            with self._create() as folder:
                try:
                    yield Path(folder)
                except OSError as error:
                    raise self._explained(error) from error  # before its end makes room
        except OSError as error:
            raise self._explained(error) from error

    def sweep(self) -> None:
        """Remove what killed processes of this machine left."""
        if self._store is not None and self.parent.is_symlink():
            return
        try:
            names = os.listdir(self.parent)
        except (FileNotFoundError, NotADirectoryError):
            return
        remove_left(self.parent, names, self.prefix)
        if self._store is not None:
            with contextlib.suppress(OSError):
                self.parent.rmdir()

    def _create(self) -> tempfile.TemporaryDirectory[str]:
        if self._store is not None:
            refuse_link(self.parent)
        attempt = 1
        while True:
            try:
                self.parent.mkdir(parents=True, exist_ok=True)
                prefix = f"{self.prefix}{os.getpid()}."
                return tempfile.TemporaryDirectory(prefix=prefix, dir=self.parent, ignore_cleanup_errors=True)
            except (FileNotFoundError, FileExistsError):
                # Another process's sweep can remove the empty parent at any time: before mkdtemp, or while mkdir looks
                # at what is in its way.
                if attempt == ATTEMPTS:
                    raise
                attempt += 1

    def _explained(self, error: OSError) -> OSError:
        """The same error and what to do about it, if it is about writing here."""
        place = self._store or self.parent
        elsewhere = error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(place)
        # A failed write names no file. During a render or the unpacking of an asset it is the temporary folder that is
        # full, not the store.
        here = "here or where TMPDIR points" if self._store is not None else "or set TMPDIR to a larger folder"
        full = f"the disk is full; free some room, {here},"
        if _no_file_left(place):
            full = f"the disk holds as many files as it can (inodes); remove some, {here},"
        remedy = {
            errno.ENOSPC: f"{full} and run the same command again, finished shards stay",
            errno.EDQUOT: f"the disk quota is used up; {full} and run the same command again",
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
        path = () if error.errno in (errno.ENOSPC, errno.EDQUOT) else (error.filename,)
        return type(error)(error.errno, f"{error.strerror} ({place}): {remedy}", *path)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder in the temporary folder, removed at the end, after a kill by the next process that asks for one."""
    spool = Spool(None)
    spool.sweep()
    with spool.folder() as folder:
        yield folder


def remove_left(parent: Path, names: Iterable[str], owner: str) -> None:
    """Remove the folders, of some in a folder, that killed processes left: those called ``OWNER`` + ``PID.…``."""
    for name in names:
        left = re.fullmatch(re.escape(owner) + r"(\d+)\.[^.]+", name)
        if left and not is_running(int(left[1])):
            shutil.rmtree(parent / name, ignore_errors=True)


def is_running(process: int) -> bool:
    """Whether this machine has a process of a number, which a file said and may be any."""
    return 0 < process < 1 << 31 and psutil.pid_exists(process)


def _no_file_left(place: Path) -> bool:
    """Whether a file system has room for bytes at most, not for one file more."""
    with contextlib.suppress(OSError):
        left = os.statvfs(place)
        return left.f_files > 0 and left.f_favail == 0
    return False


def refuse_link(folder: Path) -> None:
    """Raise `WrongUse` where a folder below OUT is a link: what is written there would land outside of OUT."""
    if folder.is_symlink():
        raise WrongUse(
            f"{folder}: a link to {os.readlink(folder)}; nothing is written through a link. Remove it, or put the "
            "folder in its place, and run the same command again"
        )
