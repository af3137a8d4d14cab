"""A dataset's folder, local or on an object store, in which a file is either whole or absent."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from twinset.contracts.canonical import sha256_of
from twinset.contracts.errors import WrongUse
from twinset.shards.storage import object_store
from twinset.shards.storage.claim import claimed
from twinset.shards.storage.spool import Spool, refuse_link, sync


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a listing. size: in bytes; stamp: text that changes when the file is replaced."""

    size: int
    stamp: str


class Store:
    """Files under one root, by relative path with '/'. The root is a local folder or any fsspec URL (``s3://…``).

    Local files are written under a temporary name on the same file system, fsynced and renamed; objects are spooled
    locally and uploaded whole. Either way a reader never meets half a file.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._local: Path | None = None
        if (urlsplit(root).scheme if "://" in root else "") in ("", "file"):
            place = root.removeprefix("file://")
            if not place or "\0" in place:
                raise WrongUse(f"{root!r} names no place; name a folder or a URL such as s3://bucket/prefix")
            self._local = Path(os.path.abspath(place))
            if os.path.lexists(self._local) and not self._local.is_dir():
                raise WrongUse(f"{self._local}: is no folder; name one")
            self.root = str(self._local)
        else:
            self._remote, self._base = object_store.connect(root)
        self._spool = Spool(self._local)

    @property
    def is_remote(self) -> bool:
        """Whether every look at a file costs a request."""
        return self._local is None

    def read(self, path: str) -> bytes:
        """The whole file; FileNotFoundError when it is absent."""
        with self.open(path) as stream:
            return stream.read()

    def read_part(self, path: str, start: int, size: int) -> bytes:
        """``size`` bytes from byte ``start`` on, fewer where the file ends; FileNotFoundError when it is absent."""
        if self._local is None and size:
            with self._reaching(path) as place:
                return bytes(self._remote.cat_file(place, start=start, end=start + size))
        with self.open(path) as stream:
            stream.seek(start)
            return stream.read(size)

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """The file as a seekable stream of bytes."""
        if self._local is not None:
            if not stat.S_ISREG((self._local / path).stat().st_mode):  # a pipe or a device would be read without end
                raise _no_file(self._local / path)
            stream: BinaryIO = (self._local / path).open("rb")
        else:
            with self._reaching(path) as place:
                stream = object_store.opened(self._remote, place, f"{self.root}/{path}")
        with stream:
            yield stream

    def local_copy(self, path: str, folder: Path) -> Path:
        """A file's own path, or that of a copy in a folder, which is made, where it lies in an object store."""
        if self._local is not None:
            return self._local / path
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / path.rsplit("/", 1)[-1]
        with self.open(path) as stream, copy.open("wb") as written:
            shutil.copyfileobj(stream, written)
        return copy

    def sha256(self, path: str) -> tuple[str, int]:
        """sha256 and size of a file."""
        with self.open(path) as stream:
            return sha256_of(stream)

    def size(self, path: str) -> int | None:
        """Size in bytes, or None when the file is absent."""
        try:
            if self._local is not None:
                return (self._local / path).stat().st_size
            with self._reaching(path) as place:
                return int(self._remote.info(place)["size"])
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders directly in a folder; empty when it is absent."""
        if self._local is not None:
            path = self._local / folder
            return sorted(os.listdir(path)) if path.is_dir() else []
        return sorted(self._children(folder))

    def listing(self, folder: str) -> dict[str, Entry]:
        """The files directly in a folder by name, of one listing; empty when it is absent."""
        if self._local is None:
            return {
                name: Entry(int(entry["size"]), object_store.stamp(entry))
                for name, entry in self._children(folder).items()
                if entry["type"] == "file"
            }
        files = {}
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self._local / folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process can remove a file in between
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode):
                        files[entry.name] = Entry(status.st_size, f"{status.st_mtime_ns}-{status.st_ino}")
                    elif stat.S_ISFIFO(status.st_mode):
                        raise _no_file(entry.path)
        return files

    def write(self, path: str, content: bytes) -> None:
        """Write a small file whole."""
        with self.spool() as folder:
            spooled = folder / "file"
            spooled.write_bytes(content)
            self.move_in(spooled, path)

    def create(self, path: str, content: bytes) -> bool:
        """Write a small object of an object store, unless there is one; returns whether it is this one now."""
        try:
            with self._reaching(path) as place:
                self._remote.pipe_file(place, content, mode="create")
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                return self.read(path) == content  # an answer that was lost on the way is asked for again
            return False
        return True

    def move_in(self, spooled: Path, path: str) -> None:
        """Move a finished file from the spool to its place; when this returns it is durable and whole."""
        if self._local is None:
            with self._reaching(path) as place:
                self._remote.put_file(str(spooled), place)
            spooled.unlink()
            return
        sync(spooled)
        target = self._target(self._local, path)
        new = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(spooled, target)
        for folder in (target.parent, *(folder.parent for folder in new)):
            sync(folder)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is absent."""
        if self._local is not None:
            self._target(self._local, path).unlink(missing_ok=True)
            return
        with contextlib.suppress(FileNotFoundError), self._reaching(path) as place:
            self._remote.rm_file(place)

    def spool(self) -> contextlib.AbstractContextManager[Path]:
        """A folder of this process for unfinished files (`shards.storage.spool.Spool.folder`)."""
        return self._spool.folder()

    def sweep(self) -> None:
        """Remove what killed processes of this machine left in the spool."""
        self._spool.sweep()

    @contextlib.contextmanager
    def for_one_build(self) -> Iterator[None]:
        """`tidied`, while no other build writes here. Raises `BuildFailed`: one does (`shards.storage.claim`)."""
        with self.tidied(), claimed(self):
            yield

    @contextlib.contextmanager
    def tidied(self) -> Iterator[None]:
        """Leave no empty folder behind that was not there before, and no spool; what killed processes left goes too."""
        roots = [] if self._local is None else [self._local, *self._local.parents]
        new = [folder for folder in roots if not folder.exists()]
        self.sweep()
        try:
            yield
        finally:
            self.sweep()
            for folder in new:
                with contextlib.suppress(OSError):
                    folder.rmdir()

    @staticmethod
    def _target(root: Path, path: str) -> Path:
        """Where a file is written or removed. A link in its place is replaced or removed; one above it is refused."""
        folder = root
        for name in path.split("/")[:-1]:
            folder /= name
            refuse_link(folder)
        return root / path

    def _children(self, folder: str) -> dict[str, dict[str, Any]]:
        """What the object store's own listing says of everything directly in a folder, by name."""
        try:
            with self._reaching(folder) as place:
                entries = self._remote.ls(place, detail=True)
        except FileNotFoundError:
            return {}
        paths = ((entry["name"].strip("/"), entry) for entry in entries)
        # A listing can hold the folder itself: as an object of no bytes, or because the path is a file's.
        return {path.rsplit("/", 1)[-1]: entry for path, entry in paths if path != place.strip("/")}

    @contextlib.contextmanager
    def _reaching(self, path: str) -> Iterator[str]:
        """An object's path, for a request whose errors say what to do."""
        with object_store.explaining(f"{self.root}/{path}"):
            yield f"{self._base}/{path}".rstrip("/")


def _no_file(path: str | Path) -> WrongUse:
    return WrongUse(f"{path}: a folder, a pipe or a device, not a file; remove it and run the same command again")
