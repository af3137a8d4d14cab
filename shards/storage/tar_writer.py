"""Tar files whose bytes depend on nothing but their members, hashed while they are written."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from types import TracebackType

BLOCK = 512
RECORD = 10240  # tar pads its end to whole records of 20 blocks
CHUNK = 1 << 18  # bytes written and hashed at once; small ones would only pass the interpreter lock to and fro
CHUNKS = 4
PADDING = bytes(BLOCK)

# Name, size and checksum; between them mode 644, user and group 0, time 0, regular file, USTAR, no names.
_HEADER = b"".join(
    (b"%b", b"0000644\0", b"0000000\0" * 2, b"%011o\0", b"0" * 11 + b"\0", b"%06o\0 0", bytes(100), b"ustar\0", b"00")
) + bytes(247)
_FIXED_SUM = sum(_HEADER.replace(b"%b", b"").replace(b"%011o", b"").replace(b"%06o\0", b"       "))


class _BackgroundHash:
    """sha256 on a second thread: hashing and the disk overlap (hashlib lets go of the interpreter lock)."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        # The same few chunks go round: fresh memory costs as much as hashing.
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[tuple[bytearray, int]] = queue.SimpleQueue()
        for _ in range(CHUNKS):
            self._free.put(bytearray(CHUNK))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def new_chunk(self) -> bytearray:
        return self._free.get()

    def update(self, chunk: bytearray, size: int) -> None:
        """Hash the first ``size`` bytes, at least one; the chunk is no longer the caller's."""
        self._full.put((chunk, size))

    def hexdigest(self) -> str:
        self._full.put((bytearray(), 0))
        self._thread.join()
        return self._hash.hexdigest()

    def _run(self) -> None:
        while (item := self._full.get())[1]:
            chunk, size = item
            self._hash.update(memoryview(chunk)[:size])
            self._free.put(chunk)


def _header(name: str, size: int) -> bytes:
    """What `tarfile` writes for a `TarInfo` of this name and size in USTAR format, at a quarter of its cost."""
    encoded = name.encode("ascii")
    if len(encoded) > 100 or size >= 8**11:
        raise ValueError(f"{name}: names have at most 100 bytes, members less than 8 GiB")
    own = b"%b%011o" % (encoded, size)
    return _HEADER % (encoded.ljust(100, b"\0"), size, sum(own) + _FIXED_SUM)


class TarWriter:
    """Writes members in the order given, with fixed owner, mode and time (USTAR headers).

    Nothing is created before the first member, so that a shard that keeps nothing leaves no empty tar (webdataset
    raises on those). Use as a context manager; afterwards `sha256` and `size` describe the file, or are ``""`` and 0.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self.size = 0
        self._file: FileIO | None = None
        self._hash: _BackgroundHash | None = None
        self._chunk = bytearray()
        self._filled = 0

    def add(self, name: str, content: bytes) -> None:
        """Append one member; ``name`` has at most 100 ASCII characters, else ValueError."""
        self._write(_header(name, len(content)))
        self._write(content)
        self._write(PADDING[: -len(content) % BLOCK])

    def add_sample(self, key: str, fields: Iterable[tuple[str, bytes]]) -> None:
        """Append the fields of one sample as ``KEY.FIELD`` members, side by side as WebDataset wants them."""
        for field, content in fields:
            self.add(f"{key}.{field}", content)

    def _write(self, part: bytes) -> None:
        if self._hash is None:
            self._file = self.path.open("xb", buffering=0)
            self._hash = _BackgroundHash()
            self._chunk = self._hash.new_chunk()
        rest = memoryview(part)
        while rest:
            taken = min(CHUNK - self._filled, len(rest))
            self._chunk[self._filled : self._filled + taken] = rest[:taken]
            self._filled += taken
            rest = rest[taken:]
            if self._filled == CHUNK:
                self._flush(self._hash)
                self._chunk = self._hash.new_chunk()
        self.size += len(part)

    def _flush(self, hasher: _BackgroundHash) -> None:
        assert self._file is not None
        # A disk that is nearly full takes a part; the next write takes the rest or says why not.
        rest = memoryview(self._chunk)[: self._filled]
        while rest:
            rest = rest[self._file.write(rest) :]
        hasher.update(self._chunk, self._filled)
        self._filled = 0

    def __enter__(self) -> TarWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._hash is None or self._file is None:
            return
        try:
            if kind is None:
                end = 2 * BLOCK
                self._write(bytes(end + -(self.size + end) % RECORD))
                if self._filled:
                    self._flush(self._hash)
        finally:
            self.sha256 = self._hash.hexdigest()
            self._file.close()
