"""One build at a time writes into OUT: a second one is told who the first is, and a dead one's claim is taken over."""

import contextlib
import errno
import fcntl
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.spool import is_running, refuse_link

logger = logging.getLogger("twinset")

CLAIM = "_building"  # below OUT, while a build runs, and after one that was killed
BEAT = 15.0  # seconds between two signs of life of a build in an object store
SILENT_FOR = 4 * BEAT  # after which a build on another machine counts as dead
_WHO = re.compile(rb"process (\d{1,9}) on ([\w.-]{1,255})\n")  # how a claim begins
#: Where nothing can be written or locked, nothing is claimed: what writes there says why it cannot.
_NO_CLAIM = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.ENOLCK}

_held = set[str]()  # roots that this process builds: locks of files do not tell its threads apart
_guard = threading.Lock()


class Claimed(BuildFailed):
    """Another build holds the store."""


@contextlib.contextmanager
def claimed(store: Any) -> Iterator[None]:
    """Hold a store (`shards.storage.store.Store`) for one build.

    In a local folder the claim is a lock of the file system, which ends with the process however that ends; in an
    object store it is an object that says every `BEAT` seconds that its build lives, by its stamp alone, since clocks
    differ. Shards can be made by anyone meanwhile: only who plans and finishes claims.

    Raises `Claimed` where another build holds it, with its host and process.
    """
    root = store.root if store.is_remote else os.path.realpath(store.root)
    with _guard:
        if root in _held:
            raise _taken(store.root, _whoami())
        _held.add(root)
    try:
        with _claimed_remotely(store) if store.is_remote else _locked(Path(store.root)):
            yield
    finally:
        _held.discard(root)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    path = root / CLAIM
    try:
        root.mkdir(parents=True, exist_ok=True)
        refuse_link(path)
        file = _lock(path)
    except OSError as error:
        if error.errno not in _NO_CLAIM:
            raise
        yield
        return
    with file:
        try:
            yield
        finally:
            if not _lies_at(file, path):  # what was written since may lie in a new folder, without what came before
                raise BuildFailed(f"{root}, or {CLAIM} in it, was removed while a build wrote there; run it again")
            path.unlink()


def _lies_at(file: Any, path: Path) -> bool:
    """Whether an open file is still the one of a path."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _lock(path: Path) -> Any:
    """The claim, open and locked for this process; children that it forks do not hold it."""
    while True:
        file = path.open("a+b", buffering=0)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            with file:
                file.seek(0)
                raise _taken(str(path.parent), file.read(1000)) from None
        if _lies_at(file, path):
            try:
                file.truncate(0)
                file.write(_whoami())
            except OSError:
                path.unlink()
                raise
            return file
        file.close()  # its build ended between the two calls and removed it


@contextlib.contextmanager
def _claimed_remotely(store: Any) -> Iterator[None]:
    while not store.create(CLAIM, _whoami()):
        dead, entry = _refuse_a_live_one(store), store.listing("").get(CLAIM)
        if entry is not None and entry.stamp == dead:  # else another took it over meanwhile
            store.remove(CLAIM)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT):
            with contextlib.suppress(OSError):  # the build itself says what is wrong with its store
                store.write(CLAIM, _whoami())

    thread = threading.Thread(target=beat, name="claim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with contextlib.suppress(OSError):
            store.remove(CLAIM)


def _refuse_a_live_one(store: Any) -> str:
    """The stamp of the claim of a dead build; empty without one. It may take `SILENT_FOR` seconds to know."""
    try:
        claim, stamp = store.read(CLAIM), store.listing("")[CLAIM].stamp
    except (FileNotFoundError, KeyError):
        return ""
    who = _WHO.match(claim)
    if who and who[2].decode() == socket.gethostname() and not is_running(int(who[1])):
        return str(stamp)
    logger.warning("%s; looking for %d s whether that still lives", _taken(store.root, claim), SILENT_FOR)
    until = time.monotonic() + SILENT_FOR
    while time.monotonic() < until:
        time.sleep(min(1.0, BEAT))
        entry = store.listing("").get(CLAIM)
        if entry is None:
            return ""
        if entry.stamp != stamp:
            raise _taken(store.root, claim)
    return str(stamp)


def _whoami() -> bytes:
    """What a claim says, and what changes at every call."""
    return f"process {os.getpid()} on {socket.gethostname()}\n{time.monotonic()}\n".encode()


def _taken(root: str, claim: bytes) -> Claimed:
    who = _WHO.match(claim)
    builder = who[0].decode().strip() if who else "another process"  # whose claim is being written
    return Claimed(
        f"{root}: {builder} is building here; wait until it ends, or end it, and run the same command again: "
        "what it finished stays"
    )
