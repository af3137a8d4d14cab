"""Tar files whose bytes depend on nothing but their members, hashed while they are written."""

from __future__ import annotations

import contextlib
import hashlib
import tarfile
from collections.abc import Iterable
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CHUNK = 1 << 18  # bytes written and hashed at once, so that small members cost little
END = bytes(2 * tarfile.BLOCKSIZE)


class _HashedFile(FileIO):
    """A new file, and the sha256 of what is in it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "xb")
        self.hash = hashlib.sha256()

    def write(self, part: ReadableBuffer, /) -> int:
        written = super().write(part)  # not all of it on a disk that is nearly full; BufferedWriter writes the rest
        self.hash.update(memoryview(part)[:written])
        return written


class TarWriter:
    """Writes members in the order given, with fixed owner, mode and time (USTAR headers).

    Nothing is created before the first member, so that a shard that keeps nothing leaves no empty tar (webdataset
    raises on those). Use as a context manager; afterwards `sha256` and `size` describe the file, or are ``""`` and 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self.size = 0
        self._raw: _HashedFile | None = None
        self._file: BufferedWriter | None = None

    def add(self, name: str, content: bytes) -> None:
        """Append one member; ``name`` has at most 100 ASCII characters, else ValueError."""
        if len(name) > tarfile.LENGTH_NAME:
            raise ValueError(f"{name}: names of members have at most {tarfile.LENGTH_NAME} characters")
        member = tarfile.TarInfo(name)  # mode 644, user and group 0, time 0
        member.size = len(content)
        # Not `TarFile.addfile`: it gives the same bytes, and takes 1.7 times as long for members of 20 kB.
        header = member.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")
        if self._file is None:
            self._raw = _HashedFile(self.path)
            self._file = BufferedWriter(self._raw, CHUNK)
        for part in (header, content, bytes(-len(content) % tarfile.BLOCKSIZE)):
            self._file.write(part)

    def add_sample(self, key: str, fields: Iterable[tuple[str, bytes]]) -> None:
        """Append the fields of one sample as ``KEY.FIELD`` members, side by side as WebDataset wants them."""
        for field, content in fields:
            self.add(f"{key}.{field}", content)

    def __enter__(self) -> TarWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._raw is None or self._file is None:
            return
        if kind is not None:
            with contextlib.suppress(OSError):  # the error in hand says more
                self._file.close()
            return
        with self._file:
            self._file.write(END)
            self._file.write(bytes(-self._file.tell() % tarfile.RECORDSIZE))
            self._file.flush()
            self.sha256, self.size = self._raw.hash.hexdigest(), self._file.tell()
