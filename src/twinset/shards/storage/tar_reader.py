"""Tars that are written: their bytes depend on their members alone, and are hashed meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import tarfile
from collections.abc import Iterable
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from twinset.contracts.errors import TwinsetError

if TYPE_CHECKING:
    import webdataset
    from _typeshed import ReadableBuffer

MEMBER_LIMIT = 256 << 20  # bytes; a picture is a few MB


class BrokenTar(TwinsetError):
    """A tar that is cut short, or holds what a shard never holds."""


LARGEST = 1 << 44  # bytes of a tar: what says more is none, and past what disks can seek
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
