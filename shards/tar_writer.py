"""Tar files whose bytes depend on nothing but their members, hashed while they are written."""

from __future__ import annotations

import hashlib
import queue
import tarfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

BLOCK = 512
RECORD = 10240  # tar pads its end to whole records of 20 blocks


class _BackgroundHash:
    """sha256 on a second thread: hashing and the disk overlap (hashlib lets go of the interpreter lock)."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._chunks: queue.Queue[bytes | None] = queue.Queue(maxsize=64)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def update(self, chunk: bytes) -> None:
        self._chunks.put(chunk)

    def hexdigest(self) -> str:
        if self._thread.is_alive():
            self._chunks.put(None)
            self._thread.join()
        return self._hash.hexdigest()

    def _run(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            self._hash.update(chunk)


class TarWriter:
    """Writes members in the order given, with fixed owner, mode and time (USTAR headers).

    Nothing is created before the first member, so that a shard that keeps nothing leaves no empty tar (webdataset
    raises on those). Use as a context manager; afterwards `sha256` and `size` describe the file, or are ``""`` and 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self.size = 0
        self._file: BinaryIO | None = None
        self._hash: _BackgroundHash | None = None

    def add(self, name: str, content: bytes) -> None:
        """Append one member; ``name`` is at most 100 bytes of ASCII."""
        header = tarfile.TarInfo(name)
        header.size = len(content)
        header.mode = 0o644
        self._write(header.tobuf(tarfile.USTAR_FORMAT))
        self._write(content)
        if padding := -len(content) % BLOCK:
            self._write(bytes(padding))

    def add_sample(self, key: str, fields: Iterable[tuple[str, bytes]]) -> None:
        """Append the fields of one sample as ``KEY.FIELD`` members, side by side as WebDataset wants them."""
        for field, content in fields:
            self.add(f"{key}.{field}", content)

    def _write(self, chunk: bytes) -> None:
        if self._file is None:
            self._file = self.path.open("xb", buffering=1 << 20)
            self._hash = _BackgroundHash()
        self._file.write(chunk)
        assert self._hash is not None
        self._hash.update(chunk)
        self.size += len(chunk)

    def __enter__(self) -> TarWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None:
            return
        try:
            if kind is None:
                end = 2 * BLOCK
                self._write(bytes(end + -(self.size + end) % RECORD))
        finally:
            assert self._hash is not None
            self.sha256 = self._hash.hexdigest()
            self._file.close()
