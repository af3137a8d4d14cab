"""Members of tars, ours and those of others: where the bytes of each lie."""

import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import TwinsetError
from twinset.shards.storage.path_ends import ending_in, key_of, path_of

MEMBER_LIMIT = 256 << 20  # bytes; a picture is a few MB
BLOCK = tarfile.BLOCKSIZE
LONGEST_HEADER = 1 << 15  # bytes of a member's headers together: its name, and all that pax and GNU say of it
REMEDY = "build this shard again"
NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9._]+")
MOST_PADDING = 1 << 20  # bytes of zeros behind the last member: tar writes 10 KB at once, unless it is told otherwise


class BrokenTar(TwinsetError):
    """A tar that is cut short, or holds what a shard never holds."""


class _Headers:
    """The file that tarfile reads headers from, which are refused where they claim to be longer than any is."""

    def __init__(self, stream: BinaryIO) -> None:
        self.seek, self.tell, self._read, self.left = stream.seek, stream.tell, stream.read, LONGEST_HEADER

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise tarfile.ReadError(f"headers of {size:,} bytes")
        self.left -= size
        return self._read(size)


def member_headers(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte and size of the content of each regular member of a seekable, uncompressed tar, in order; links
    and files with holes as members of no bytes at 0. The stream may be read between two of them.

    where: the tar's path, for messages.

    Raises `BrokenTar`: a header is damaged, or says more than the file holds; or the tar does not end as tars do, so
    that members behind it may be lost.
    """
    size, end = stream.seek(0, os.SEEK_END), 0
    stream.seek(0)
    headers = _Headers(stream)
    try:
        with tarfile.open(fileobj=headers, mode="r:", encoding="utf-8", errors="replace") as tar:  # type: ignore[call-overload]
            for member in iter(tar.next, None):
                # What a header says of sizes may be anything: tarfile would go back, or past the end.
                if member.size < 0 or not end < tar.offset <= size:
                    raise BrokenTar(f"{where}: byte {end}: {member.name[:100]!r} is damaged, or the tar is cut short")
                if member.issym() or member.islnk() or member.issparse():
                    yield member.name, 0, 0
                elif member.isreg():
                    yield member.name, member.offset_data, member.size
                end, headers.left = tar.offset, LONGEST_HEADER
                tar.members.clear()  # which tarfile keeps all, and what is said of all members, for ever
                tar.pax_headers.clear()
    except (tarfile.TarError, ValueError, IndexError, OverflowError) as error:
        raise BrokenTar(f"{where}: byte {end}: not a header of a tar, or it is cut short ({error})") from error
    stream.seek(end)
    rest = stream.read(MOST_PADDING)  # tarfile takes a damaged header for the end
    if len(rest) < 2 * BLOCK or any(rest) or end + len(rest) < size:
        raise BrokenTar(
            f"{where}: byte {end}: {size - end:,} bytes follow the last member, and not the zeros that end a tar; "
            "a header is damaged, the tar is cut short, or several were joined"
        )


def member_slices(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """`member_headers` of a shard. Raises `BrokenTar` also where a member is none that a shard holds, without a remedy,
    which depends on where the tar comes from.
    """
    for name, place, size in member_headers(stream, where):
        if not place or not NAME.fullmatch(name) or size > MEMBER_LIMIT:
            raise BrokenTar(f"{where}: member {name!r} is not a field of a sample")
        yield name, place, size


def member_places(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte of the header and byte after the padding of each member of a shard, in order. Raises
    `BrokenTar`: as `read_members`, as far as headers tell.
    """
    try:
        for name, place, size in member_slices(stream, where):
            yield name, place - BLOCK, place + -(-size // BLOCK) * BLOCK
    except BrokenTar as error:
        raise BrokenTar(f"{error}; {REMEDY}") from error


def read_members(stream: BinaryIO, where: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all members of a shard, in order. where: the tar's path, for messages."""
    try:
        for name, place, size in member_slices(stream, where):
            stream.seek(place)
            yield name, stream.read(size)
    except BrokenTar as error:
        raise BrokenTar(f"{error}; {REMEDY}") from error


LONGEST_NAME = 512  # bytes of a key; every key takes as much memory as the longest
REMEMBERED = 4096  # tars, of 0.3 MB each
_lock = Lock()


@dataclass(frozen=True, slots=True)
class TarMembers:
    """Members of a tar by how their paths end: some 50 bytes each, for tars of ten thousand images.

    keys: sorted (`shards.storage.path_ends`). slices: offset and size of each member's bytes in the file.
    """

    keys: NDArray[np.bytes_]
    slices: NDArray[np.int64]

    def ending_in(self, name: str) -> Iterator[tuple[str, int, int]]:
        """Path, offset and size of each member whose path ends in a name; of equal paths the first alone."""
        for at in ending_in(name, self.keys):
            offset, size = self.slices[at].tolist()
            yield path_of(bytes(self.keys[at])), offset, size


def tar_members(tar: Path, suffixes: tuple[str, ...]) -> TarMembers:
    """The regular files of an uncompressed tar whose names end with one of some suffixes (lower case).

    What comes behind something that is no tar is left out: a download that is not finished holds what it holds. A
    process reads the headers of a tar once, as long as it does not change: two seconds for ten thousand images.
    """
    status = tar.stat()
    with _lock:  # threads that ask for one tar wait for the first of them
        return _members(tar, status.st_size, status.st_mtime_ns, suffixes)


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
    slices = np.array([places[key] for key in keys], np.int64).reshape(-1, 2)
    return TarMembers(np.array(keys, np.bytes_), slices)
