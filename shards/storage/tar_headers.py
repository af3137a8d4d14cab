"""Where the content of each member of a tar lies, for readers that jump into it: only headers are read."""

import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from twinset.shards.storage.tar_reader import MEMBER_LIMIT, NAME, BrokenTar

BLOCK = tarfile.BLOCKSIZE
# USTAR: name [0, 100), size [124, 136) and checksum [148, 156) in octal, kind of member at 156, prefix [345, 500).
_REGULAR = (ord("0"), 0)


def member_slices(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte and size of the content of each member of a seekable tar, in order.

    For tars as `shards.storage.tar_writer` writes them: seven times as fast as tarfile, which counts for an index of a
    million samples.

    Args:
        where: the tar's path, for messages.

    Raises:
        BrokenTar: a header is damaged or cut short, or of a member that a shard never holds. Without a remedy, which
            depends on where the tar comes from.
    """
    place = 0
    while True:
        stream.seek(place)
        header = stream.read(BLOCK)
        if len(header) == BLOCK and not any(header):
            return
        name, size = _read(header, f"{where}: byte {place}")
        yield name, place + BLOCK, size
        place += BLOCK + -(-size // BLOCK) * BLOCK


def _read(header: bytes, where: str) -> tuple[str, int]:
    """Name and size that a header states."""
    if len(header) < BLOCK:
        raise BrokenTar(f"{where}: the tar is cut short")
    try:
        # The sum of all bytes, those of the checksum itself counted as spaces.
        said, found = int(header[148:156].rstrip(b"\0 "), 8), sum(header) - sum(header[148:156]) + 8 * ord(" ")
        name, size = header[:100].rstrip(b"\0").decode("ascii"), int(header[124:136].rstrip(b"\0 "), 8)
    except ValueError as error:
        raise BrokenTar(f"{where}: not a header of a tar ({error})") from error
    if said != found:
        raise BrokenTar(f"{where}: a damaged header")
    if header[156] not in _REGULAR or header[345] or not NAME.fullmatch(name) or not 0 <= size <= MEMBER_LIMIT:
        raise BrokenTar(f"{where}: member {name!r} is not a field of a sample")
    return name, size
