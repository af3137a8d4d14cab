"""Members of tars, ours and those of others: headers are read several times as fast as by tarfile, for millions."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from twinset.shards.storage.path_ends import ending_in, key_of, path_of
from twinset.shards.storage.tar_reader import BLOCK, LARGEST, MEMBER_LIMIT, BrokenTar

#: Bytes that are read at once: a header, and most texts behind it.
WINDOW = 4096
LONGEST_EXTENSION = 1 << 16  # bytes of a pax header or of a long name
_PAX = re.compile(rb"(\d{1,9}) ([^=]+)=")
_REGULAR, _LONG_NAME, _PAX_NEXT, _EXTENSIONS = b"0\0007", ord("L"), ord("x"), b"Lxg"
_UNREAD = b"12S"  # links, and files with holes
AGAIN = "build this shard again"
NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9._]+")
MOST_PADDING = 1 << 20  # bytes of zeros behind the last member: tar writes 10 KB at once, unless it is told otherwise

#: Bytes from a place of a file on, as many as are asked for unless the file ends.
ReadPart = Callable[[int, int], bytes]


class MemberHeaders:
    """The regular members of an uncompressed tar, in order; links and files with holes as members of no bytes at 0.

    USTAR, GNU's long names and pax headers, which img2dataset writes before each member for its time.

    Args:
        read: of the file. size: of the file, in bytes. where: its path, for messages.
    """

    def __init__(self, read: ReadPart, size: int, where: str) -> None:
        self._read, self._size, self._where = read, size, where
        self._start, self._held = 0, b""

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        """Name, first byte and size of the content of each. Raises `BrokenTar`: a header is damaged, or says more than
        the file holds; or the tar does not end as tars do, so that members behind it may be lost.
        """
        place, long_name, pax = 0, b"", dict[bytes, bytes]()
        while True:
            header = self.content(place, BLOCK)
            if len(header) == BLOCK and not any(header):
                rest = self._read(place, MOST_PADDING)
                if len(rest) < 2 * BLOCK or any(rest) or place + len(rest) < self._size:
                    raise BrokenTar(
                        f"{self._where}: byte {place}: {self._size - place:,} bytes follow the last member, and not "
                        "the zeros that end a tar; it is cut short, or several tars were joined"
                    )
                return
            where = f"{self._where}: byte {place}"
            name, size, kind = _fields(header, where)
            if kind in _EXTENSIONS:
                if size > LONGEST_EXTENSION:
                    raise BrokenTar(f"{where}: a name or header of {size:,} bytes")
                said = self.content(place + BLOCK, size)
                if kind == _LONG_NAME:
                    long_name = said.rstrip(b"\0")
                elif kind == _PAX_NEXT:
                    pax = _records(said, where)
            else:
                name = pax.get(b"path", long_name or name)
                size = _number(pax[b"size"], where, 10) if b"size" in pax else size
            data = place + BLOCK
            place = data + -(-size // BLOCK) * BLOCK
            if data + size > self._size or place > LARGEST:
                raise BrokenTar(f"{where}: {name[:100]!r} has {size:,} bytes, more than the tar: it is cut short")
            if kind in _REGULAR or kind in _UNREAD:
                yield name.decode("utf-8", "replace"), *((data, size) if kind in _REGULAR else (0, 0))
            if kind not in _EXTENSIONS:
                long_name, pax = b"", {}

    def content(self, place: int, size: int) -> bytes:
        """Some bytes of the file, mostly of what was read already; at most `MEMBER_LIMIT`."""
        begin = place - self._start
        if begin < 0 or begin + size > len(self._held):
            self._start, self._held = place, self._read(place, max(min(size, MEMBER_LIMIT), WINDOW))
            begin = 0
        return self._held[begin : begin + size]


def member_headers(stream: BinaryIO, where: str) -> MemberHeaders:
    """Those of an open file."""

    def read(place: int, size: int) -> bytes:
        stream.seek(place)
        return stream.read(size)

    return MemberHeaders(read, stream.seek(0, os.SEEK_END), where)


def _fields(header: bytes, where: str) -> tuple[bytes, int, int]:
    """Name, size and kind that a header states."""
    if len(header) < BLOCK:
        raise BrokenTar(f"{where}: the tar is cut short")
    # The sum of all bytes, those of the checksum itself counted as spaces.
    if _number(header[148:156], where) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise BrokenTar(f"{where}: a damaged header")
    name = header[:100].partition(b"\0")[0]
    if header[257:263] == b"ustar\0" and header[345]:
        name = header[345:500].partition(b"\0")[0] + b"/" + name
    return name, _number(header[124:136], where, 8), header[156]


def _number(field: bytes, where: str, base: int = 8) -> int:
    """A number as text; or, where its first bit is set, in bytes (GNU, sizes over 8 GB)."""
    if field[:1] and field[0] & 0x80:
        return int.from_bytes(field[1:], "big")
    try:
        found = int(field.strip(b"\0 ") or b"0", base)
    except ValueError as error:
        raise BrokenTar(f"{where}: not a header of a tar ({error})") from error
    if found < 0:
        raise BrokenTar(f"{where}: not a header of a tar (a negative number)")
    return found


def _records(said: bytes, where: str) -> dict[bytes, bytes]:
    """The records ``LENGTH KEY=VALUE`` of a pax header."""
    found, place = dict[bytes, bytes](), 0
    while place < len(said) and (record := _PAX.match(said, place)):
        end = place + int(record[1])
        if end <= record.end() or end > len(said):
            raise BrokenTar(f"{where}: a damaged pax header")
        if record[2].startswith(b"GNU.sparse"):
            raise BrokenTar(f"{where}: a member with holes, whose bytes do not lie side by side")
        found[record[2]] = said[record.end() : end - 1]
        place = end
    if place < len(said):
        raise BrokenTar(f"{where}: a damaged pax header")
    return found


def member_slices(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte and size of the content of each member of a seekable tar, in order.

    Args:
        where: the tar's path, for messages.

    Raises:
        BrokenTar: as `MemberHeaders`, or a member is none that a shard holds. Without a remedy, which depends on where
            the tar comes from.
    """
    for name, place, size in member_headers(stream, where):
        if not place or not NAME.fullmatch(name) or size > MEMBER_LIMIT:
            raise BrokenTar(f"{where}: member {name!r} is not a field of a sample")
        yield name, place, size


def member_places(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte of the header and byte after the padding of each member of a seekable tar, in order. Raises
    `BrokenTar`: as `read_members`, as far as headers tell.
    """
    try:
        for name, place, size in member_slices(stream, where):
            yield name, place - BLOCK, place + -(-size // BLOCK) * BLOCK
    except BrokenTar as error:
        raise BrokenTar(f"{error}; {AGAIN}") from error


def read_members(stream: BinaryIO, where: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all members of a seekable tar, in order. where: the tar's path, for messages."""
    try:
        for name, place, size in member_slices(stream, where):
            stream.seek(place)
            content = stream.read(size)
            if len(content) < size:
                raise BrokenTar(f"{where}: cut short within {name}")
            yield name, content
    except BrokenTar as error:
        raise BrokenTar(f"{error}; {AGAIN}") from error


LONGEST_NAME = 512  # bytes of a key; every key takes as much memory as the longest
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
    places: dict[bytes, tuple[int, int]] = {}
    with open(tar, "rb") as stream, suppress(BrokenTar):
        for name, offset, size in member_headers(stream, str(tar)):
            if offset and name.lower().endswith(suffixes) and "\0" not in name:
                key = key_of(name)
                if len(key) <= LONGEST_NAME:
                    places.setdefault(key, (offset, size))
    keys = sorted(places)
    slices = np.array([places[key] for key in keys], dtype=np.int64).reshape(-1, 2)
    return TarMembers(np.array(keys, dtype=np.bytes_), slices[:, 0].copy(), slices[:, 1].copy())
