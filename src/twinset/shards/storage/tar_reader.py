"""Tars that are written: their bytes depend on their members alone."""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import TwinsetError

if TYPE_CHECKING:
    import webdataset

MEMBER_LIMIT = 256 << 20  # bytes; a picture is a few MB
BLOCK = tarfile.BLOCKSIZE


class BrokenTar(TwinsetError):
    """A tar that is cut short, or holds what a shard never holds."""


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
        self._file: BinaryIO | None = None
        self._tar: webdataset.TarWriter | None = None

    def add(self, name: str, content: bytes) -> None:
        """Append one member, ``KEY.FIELD``; ``name`` has at most 100 ASCII characters, else ValueError."""
        if len(name) > tarfile.LENGTH_NAME or not name.isascii():
            raise ValueError(f"{name}: names of members have at most {tarfile.LENGTH_NAME} ASCII characters")
        if self._tar is None:
            import webdataset  # imports torch, where it is installed

            self._file = self.path.open("xb")
            self._tar = webdataset.TarWriter(self._file, encoder=False, mtime=0, user="", group="", mode=0o644)
        key, _, field = name.partition(".")
        # A member at a time: of a whole sample webdataset would sort the fields by name.
        self._tar.write({"__key__": key, field: content})

    def add_sample(self, key: str, fields: Iterable[tuple[str, bytes]]) -> None:
        """Append the fields of one sample as ``KEY.FIELD`` members, side by side as WebDataset wants them."""
        for field, content in fields:
            self.add(f"{key}.{field}", content)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is None or self._tar is None:
            return
        if kind is not None:  # the error in hand says more than what closing may raise
            for opened in (self._tar, self._file):
                with contextlib.suppress(OSError):
                    opened.close()
            self.path.unlink(missing_ok=True)
            return
        with self._file:
            self._tar.close()  # the two blocks of zeros that end a tar
        self.sha256, self.size = sha256_of_file(self.path)
