"""A dataset's folder, local or on an object store, in which a file is either whole or absent."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import fsspec
import psutil

from manifests.canonical import sha256_of
from manifests.errors import WrongUse

SPOOL = "_spool"
TRIES = 10
CLIENTS = ("botocore", "aiobotocore", "aiohttp")  # packages whose errors s3fs lets through as they are


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a listing. size: in bytes; stamp: changes when the file is replaced."""

    size: int
    stamp: str


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
            place = root.removeprefix("file://")
            if not place or "\0" in place:
                raise WrongUse(f"{root!r} names no place; name a folder or a URL such as s3://bucket/prefix")
            self.local = Path(os.path.abspath(place))
            self.root = str(self.local)
            return
        try:
            # Listings must not be cached: other workers write here too.
            self._remote, self._base = cast(Any, fsspec.core.url_to_fs(root, use_listings_cache=False))
        except (ImportError, ValueError) as error:
            raise WrongUse(f"{root}: this kind of URL cannot be written ({error}); use a folder or s3://…") from error
        self._base = self._base.rstrip("/")
        if not urlsplit(root).netloc and "::" not in root and scheme != "memory":
            raise WrongUse(f"{root!r} names no bucket; write it as in {scheme}://bucket/prefix")

    def read(self, path: str) -> bytes:
        """The whole file; FileNotFoundError when it is absent."""
        if self.local is not None:
            return (self.local / path).read_bytes()
        with self._reaching(path):
            return bytes(self._remote.cat_file(f"{self._base}/{path}"))

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """The file as a seekable stream of bytes."""
        if self.local is not None:
            with (self.local / path).open("rb") as stream:
                yield stream
            return
        with self._reaching(path):
            remote = self._remote.open(f"{self._base}/{path}")
        with remote:
            try:
                yield cast(BinaryIO, remote)
            except Exception as error:
                if not _of_client(error):
                    raise
                raise OSError(errno.EIO, f"{error}; run the same command again", f"{self.root}/{path}") from error

    def sha256(self, path: str) -> tuple[str, int]:
        """sha256 and size of a file."""
        with self.open(path) as stream:
            return sha256_of(stream)

    def size(self, path: str) -> int | None:
        """Size in bytes, or None when the file is absent."""
        try:
            if self.local is not None:
                return (self.local / path).stat().st_size
            with self._reaching(path):
                return int(self._remote.info(f"{self._base}/{path}")["size"])
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Sorted names of the files and folders directly in a folder; empty when it is absent."""
        if self.local is not None:
            path = self.local / folder
            return sorted(os.listdir(path)) if path.is_dir() else []
        try:
            with self._reaching(folder):
                found = self._remote.ls(f"{self._base}/{folder}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return sorted(name for entry in found if (name := entry.rstrip("/").rsplit("/", 1)[-1]))

    def listing(self, folder: str) -> dict[str, Entry]:
        """Size and stamp of the files directly in a folder, by name, with one listing; empty when it is absent."""
        if self.local is not None:
            try:
                with os.scandir(self.local / folder) as found:
                    stats = [(one.name, one.stat()) for one in found if one.is_file()]
            except (FileNotFoundError, NotADirectoryError):
                return {}
            return {name: Entry(one.st_size, f"{one.st_mtime_ns}-{one.st_ino}") for name, one in stats}
        try:
            with self._reaching(folder):
                listed = self._remote.ls(f"{self._base}/{folder}".rstrip("/"), detail=True)
        except FileNotFoundError:
            return {}
        return {
            one["name"].rsplit("/", 1)[-1]: Entry(int(one["size"]), str(one.get("ETag") or one.get("LastModified") or one.get("created")))
            for one in listed if one["type"] == "file"
        }

    def write(self, path: str, content: bytes) -> None:
        """Write a small file whole."""
        with self.spool() as folder:
            spooled = folder / "file"
            spooled.write_bytes(content)
            self.publish(spooled, path)

    def publish(self, spooled: Path, path: str) -> None:
        """Move a finished file from the spool to its place; when this returns it is durable and whole."""
        if self.local is None:
            with self._reaching(path):
                self._remote.put_file(str(spooled), f"{self._base}/{path}")
            spooled.unlink()
            return
        with spooled.open("rb+") as stream:
            os.fsync(stream.fileno())
        target = self.local / path
        new = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(spooled, target)
        for folder in (target.parent, *(folder.parent for folder in new)):
            sync(folder)

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens when it is absent."""
        if self.local is not None:
            (self.local / path).unlink(missing_ok=True)
            return
        with contextlib.suppress(FileNotFoundError), self._reaching(path):
            self._remote.rm_file(f"{self._base}/{path}")

    @contextlib.contextmanager
    def spool(self) -> Iterator[Path]:
        """A folder of this process for unfinished files, on the file system that they will be renamed within."""
        folder: Path | None = None
        try:
            folder = self._new_spool()
            yield folder
        except OSError as error:
            raise self.explained(error) from error
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what killed processes of this machine left in the spool."""
        if not self._spools.is_dir():
            return
        for name in os.listdir(self._spools):
            owner = re.fullmatch(re.escape(self._prefix) + r"(\d+)\.[^.]+", name)
            if owner and not psutil.pid_exists(int(owner[1])):
                shutil.rmtree(self._spools / name, ignore_errors=True)
        if self.local is not None:
            with contextlib.suppress(OSError):
                self._spools.rmdir()

    @contextlib.contextmanager
    def tidied(self) -> Iterator[None]:
        """Leave no empty folder behind that was not there before, and no spool; what killed processes left goes too."""
        roots = [] if self.local is None else [self.local, *self.local.parents]
        new = [folder for folder in roots if not folder.exists()]
        self.sweep()
        try:
            yield
        finally:
            self.sweep()
            for folder in new:
                with contextlib.suppress(OSError):
                    folder.rmdir()

    @property
    def _spools(self) -> Path:
        return Path(tempfile.gettempdir()) if self.local is None else self.local / SPOOL

    @property
    def _prefix(self) -> str:
        return f"{'twinset-' if self.local is None else ''}{socket.gethostname()}."

    def _new_spool(self) -> Path:
        for _ in range(TRIES):
            self._spools.mkdir(parents=True, exist_ok=True)
            # Another process's sweep can remove the empty parent in between.
            with contextlib.suppress(FileNotFoundError):
                return Path(tempfile.mkdtemp(prefix=f"{self._prefix}{os.getpid()}.", dir=self._spools))
        raise FileNotFoundError(errno.ENOENT, "this folder does not stay", str(self._spools))

    def explained(self, error: OSError) -> OSError:
        """The same error with what to do about it, where the trouble is with writing here."""
        elsewhere = error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(
            self.local or self._spools
        )
        # A write that fails names no file: of a render or an unpacked asset, it is the temporary folder that is full.
        here = "here or where TMPDIR points" if self.local is not None else "or set TMPDIR to a larger folder"
        full = f"free some room, {here},"
        remedy = {
            errno.ENOSPC: f"the disk is full; {full} and run the same command again, finished shards stay",
            errno.EDQUOT: f"the disk quota is used up; {full} and run the same command again",
            errno.EROFS: "the file system is read-only; name another --out",
            errno.EACCES: "no permission to write; correct the permissions or name another --out",
            errno.EPERM: "no permission to write; correct the permissions or name another --out",
            errno.ENOTDIR: "a part of this path is a file; name another --out",
            errno.EISDIR: "a folder lies where a file belongs; remove it and run the same command again",
            errno.EEXIST: "a part of this path is a file; name another --out",
        }.get(error.errno or 0)
        place = str(self.local or self._spools)
        if remedy is None or elsewhere or place in str(error.strerror):
            return error
        return type(error)(error.errno, f"{error.strerror} ({place}): {remedy}", error.filename)

    @contextlib.contextmanager
    def _reaching(self, path: str) -> Iterator[None]:
        """Turn what can go wrong on the way to an object store into OSErrors that name the object and the remedy."""
        self._remote.invalidate_cache()
        url = f"{self.root}/{path}"
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, f"{error}; does the bucket exist?", url) from error
        except PermissionError as error:
            remedy = "the credentials do not allow this (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE)"
            raise PermissionError(errno.EACCES, f"{error}; {remedy}", url) from error
        except NotImplementedError as error:
            raise WrongUse(f"{url}: this kind of URL cannot be written; use a folder or s3://…") from error
        except Exception as error:
            if not isinstance(error, OSError) and not _of_client(error):
                raise
            remedy = "is the store reachable (AWS_ENDPOINT_URL, credentials)? Run the same command again to resume"
            code = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
            raise OSError(code, f"{error}; {remedy}", url) from error


def _of_client(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in CLIENTS


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
