"""A dataset's folder, local or on an object store, in which a file is either whole or absent."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import fsspec
import psutil

from manifests.canonical import sha256_of
from manifests.errors import WrongUse

SPOOL = "_spool"


class Store:
    """Files under one root, by relative path with '/'. The root is a local folder or any fsspec URL (``s3://…``).

    Local files are written under a temporary name on the same file system, fsynced and renamed; objects are spooled
    locally and uploaded whole. Either way a reader never meets half a file.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        scheme = urlsplit(root).scheme if "://" in root else ""
        self.local: Path | None = None
        if scheme in ("", "file"):
            self.local = Path(os.path.abspath(root.removeprefix("file://")))
            self.root = str(self.local)
            return
        try:
            # Listings must not be cached: other workers write here too.
            self._remote, self._base = cast(Any, fsspec.core.url_to_fs(root, use_listings_cache=False))
        except (ImportError, ValueError) as error:
            raise WrongUse(f"{root}: this kind of URL cannot be written ({error}); use a folder or s3://…") from error
        self._base = self._base.rstrip("/")

    def read(self, path: str) -> bytes:
        """The whole file; FileNotFoundError when it is absent."""
        if self.local is not None:
            return (self.local / path).read_bytes()
        self._remote.invalidate_cache()
        return bytes(self._remote.cat_file(f"{self._base}/{path}"))

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """The file as a seekable stream of bytes."""
        stream = (self.local / path).open("rb") if self.local is not None else self._remote.open(f"{self._base}/{path}")
        with stream:
            yield cast(BinaryIO, stream)

    def sha256(self, path: str) -> tuple[str, int]:
        """sha256 and size of a file."""
        with self.open(path) as stream:
            return sha256_of(stream)

    def size(self, path: str) -> int | None:
        """Size in bytes, or None when the file is absent."""
        try:
            if self.local is not None:
                return (self.local / path).stat().st_size
            self._remote.invalidate_cache()
            return int(self._remote.info(f"{self._base}/{path}")["size"])
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders directly in a folder; empty when it is absent."""
        if self.local is not None:
            path = self.local / folder
            return sorted(os.listdir(path)) if path.is_dir() else []
        self._remote.invalidate_cache()
        try:
            found = self._remote.ls(f"{self._base}/{folder}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return sorted(name for entry in found if (name := entry.rstrip("/").rsplit("/", 1)[-1]))

    def write(self, path: str, content: bytes) -> None:
        """Write a small file whole."""
        with self.spool() as folder:
            spooled = folder / "file"
            spooled.write_bytes(content)
            self.publish(spooled, path)

    def publish(self, spooled: Path, path: str) -> None:
        """Move a finished file from the spool to its place; when this returns it is durable and whole."""
        if self.local is None:
            self._remote.put_file(str(spooled), f"{self._base}/{path}")
            spooled.unlink()
            return
        with spooled.open("rb+") as stream:
            os.fsync(stream.fileno())
        target = self.local / path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(spooled, target)
        _sync_folder(target.parent)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is absent."""
        if self.local is not None:
            (self.local / path).unlink(missing_ok=True)
            return
        with contextlib.suppress(FileNotFoundError):
            self._remote.rm_file(f"{self._base}/{path}")

    @contextlib.contextmanager
    def spool(self) -> Iterator[Path]:
        """A folder of this process for unfinished files, on the file system that they will be renamed within."""
        try:
            if self.local is None:
                folder = Path(tempfile.mkdtemp(prefix="twinset-"))
            else:
                parent = self.local / SPOOL
                parent.mkdir(parents=True, exist_ok=True)
                folder = Path(tempfile.mkdtemp(prefix=f"{socket.gethostname()}.{os.getpid()}.", dir=parent))
        except OSError as error:
            raise self.explained(error) from error
        try:
            yield folder
        except OSError as error:
            raise self.explained(error) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what killed processes of this machine left in the spool."""
        if self.local is None:
            return
        parent = self.local / SPOOL
        for name in self.names(SPOOL):
            host, _, rest = name.rpartition(".")[0].rpartition(".")
            if host == socket.gethostname() and rest.isdigit() and not psutil.pid_exists(int(rest)):
                shutil.rmtree(parent / name, ignore_errors=True)
        with contextlib.suppress(OSError):
            parent.rmdir()

    def explained(self, error: OSError) -> OSError:
        """The same error with what to do about it."""
        remedy = {
            errno.ENOSPC: "the disk is full; free some room and run the same command again, finished shards stay",
            errno.EDQUOT: "the disk quota is used up; free some room and run the same command again",
            errno.EROFS: "the file system is read-only; name another --out",
            errno.EACCES: "no permission to write; correct the permissions or name another --out",
            errno.ENOTDIR: "a part of this path is a file; name another --out",
        }.get(error.errno or 0)
        if remedy is None or "\n" in str(error.strerror):
            return error
        return type(error)(error.errno, f"{error.strerror} ({self.root}): {remedy}", error.filename)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
