"""Tars: written, with bytes that depend on their members alone, and hashed meanwhile; places of others' images."""

from __future__ import annotations

import contextlib
import hashlib
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedWriter, FileIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import TwinsetError
from twinset.shards.storage.path_ends import ending_in, key_of, path_of

if TYPE_CHECKING:
    import webdataset
    from _typeshed import ReadableBuffer

MEMBER_LIMIT = 256 << 20  # bytes; a picture is a few MB
# What tarfile raises for numbers in headers, all of which it trusts: a comment of a terabyte needs memory for it.
HEADER_ERRORS = (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError, MemoryError)


class BrokenTar(TwinsetError):
    """A tar that is cut short, or holds what a shard never holds."""


LONGEST_NAME = 512  # bytes of a key; every key takes as much memory as the longest
LARGEST = 1 << 44  # bytes of a tar: what says more is none, and past what disks can seek
REMEMBERED = 4096  # tars, of 0.3 MB each

_lock = Lock()


@dataclass(frozen=True, slots=True)
class TarMembers:
    """Members of a tar by how their paths end: some 50 bytes each, for tars of ten thousand images.

    keys: sorted (`shards.storage.path_ends`). offsets, sizes: of each member's bytes in the file.
    """

    keys: NDArray[np.bytes_]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def ending_in(self, name: str) -> Iterator[tuple[str, int, int]]:
        """Path, offset and size of each member whose path ends in a name; of equal paths the first alone."""
        for at in ending_in(name, self.keys):
            yield path_of(bytes(self.keys[at])), int(self.offsets[at]), int(self.sizes[at])


def tar_members(tar: Path, suffixes: tuple[str, ...]) -> tuple[TarMembers, int]:
    """The regular files of an uncompressed tar whose names end with one of some suffixes (lower case), and its size.

    What comes behind something that is no tar is left out: a download that is not finished holds what it holds. A
    process reads the headers of a tar once, as long as it does not change: ten thousand images take half a second.
    """
    status = tar.stat()
    with _lock:  # threads that ask for one tar wait for the first of them
        return _members(tar, status.st_size, status.st_mtime_ns, suffixes), status.st_size


@lru_cache(maxsize=REMEMBERED)
def _members(tar: Path, _size: int, _changed: int, suffixes: tuple[str, ...]) -> TarMembers:
    found: dict[bytes, tuple[int, int]] = {}
    try:
        with tarfile.open(tar, "r:") as members:
            for member in members:
                # Where it says less than nothing tarfile would step back, and read the same headers for ever.
                if member.size < 0 or not member.offset < members.offset <= LARGEST:
                    break
                if member.isreg() and not member.issparse() and member.name.lower().endswith(suffixes):
                    key = key_of(member.name)
                    if len(key) <= LONGEST_NAME and "\0" not in member.name:
                        found.setdefault(key, (member.offset_data, member.size))
                members.members = []  # type: ignore[attr-defined]  # tarfile keeps all that it met
    except HEADER_ERRORS:
        pass
    everything = sorted(found.items())
    places = np.array([where for _, where in everything], dtype=np.int64).reshape(-1, 2)
    keys = np.array([key for key, _ in everything], dtype=np.bytes_)
    return TarMembers(keys, places[:, 0].copy(), places[:, 1].copy())


BLOCK = tarfile.BLOCKSIZE


CHUNK = 1 << 18  # bytes written and hashed at once, so that small members cost little


class _HashedFile(FileIO):
    """A new file, and the sha256 of what is in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "xb")
        self.hash = hashlib.sha256()

    def write(self, part: ReadableBuffer, /) -> int:
        written = super().write(part)  # not all of it on a disk that is nearly full; BufferedWriter writes the rest
        self.hash.update(memoryview(part)[:written])
        return written


class TarWriter(contextlib.AbstractContextManager["TarWriter"]):
    """Writes members in the order given with `webdataset.TarWriter`; owner, mode and time are fixed (USTAR headers).

    Nothing is created before the first member, so that a shard that keeps nothing leaves no empty tar (webdataset
    raises on those); after an error it is removed. Use as a context manager; afterwards `sha256` and `size` describe
    the file, or are ``""`` and 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self.size = 0
        self._raw: _HashedFile | None = None
        self._file: BufferedWriter | None = None
        self._tar: webdataset.TarWriter | None = None

    def add(self, name: str, content: bytes) -> None:
        """Append one member, ``KEY.FIELD``; ``name`` has at most 100 ASCII characters, else ValueError."""
        if len(name) > tarfile.LENGTH_NAME or not name.isascii():
            raise ValueError(f"{name}: names of members have at most {tarfile.LENGTH_NAME} ASCII characters")
        if self._tar is None:
            import webdataset  # imports torch, where it is installed

            self._raw = _HashedFile(self.path)
            self._file = BufferedWriter(self._raw, CHUNK)
            self._tar = webdataset.TarWriter(self._file, encoder=False, mtime=0, user="", group="", mode=0o644)
        key, _, field = name.partition(".")
        # A member at a time: of a whole sample webdataset would sort the fields by name.
        self._tar.write({"__key__": key, field: content})

    def add_sample(self, key: str, fields: Iterable[tuple[str, bytes]]) -> None:
        """Append the fields of one sample as ``KEY.FIELD`` members, side by side as WebDataset wants them."""
        for field, content in fields:
            self.add(f"{key}.{field}", content)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._raw is None or self._file is None or self._tar is None:
            return
        if kind is not None:  # the error in hand says more than what closing may raise
            for opened in (self._tar, self._file):
                with contextlib.suppress(OSError):
                    opened.close()
            self.path.unlink(missing_ok=True)
            return
        with self._file:
            self._tar.close()  # the two blocks of zeros that end a tar
            self._file.flush()
            self.sha256, self.size = self._raw.hash.hexdigest(), self._file.tell()
