"""Reading tars that may not be ours: members in memory only, with limits, and no name that leads anywhere."""

import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from twinset.manifests.errors import TwinsetError

MEMBER_LIMIT = 256 << 20  # bytes; a picture is a few MB
NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9._]+")


class BrokenTar(TwinsetError):
    """A tar that is cut short, or holds what a shard never holds."""


def member_places(stream: BinaryIO, where: str) -> Iterator[tuple[str, int, int]]:
    """Name, first byte of the header and byte after the padding of each member of a seekable tar, in order.

    Raises:
        BrokenTar: as `read_members`, as far as headers tell.
    """
    try:
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                _check(member, where)
                blocks = -(-member.size // tarfile.BLOCKSIZE)
                yield member.name, member.offset, member.offset_data + blocks * tarfile.BLOCKSIZE
                tar.members = []  # type: ignore[attr-defined]  # tarfile keeps all that it met
    except (tarfile.TarError, EOFError) as error:
        raise BrokenTar(f"{where}: not a whole tar ({error}); build this shard again") from error


def read_members(stream: BinaryIO, where: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all members, in order. where: the tar's path, for messages."""
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                _check(member, where)
                file = tar.extractfile(member)
                content = file.read() if file is not None else b""
                if len(content) != member.size:
                    raise BrokenTar(f"{where}: cut short within {member.name}; build this shard again")
                yield member.name, content
    except (tarfile.TarError, EOFError) as error:
        raise BrokenTar(f"{where}: not a whole tar ({error}); build this shard again") from error


def _check(member: tarfile.TarInfo, where: str) -> None:
    # Past a sparse one tarfile would read what its header says, long after the tar has ended.
    if not member.isreg() or member.issparse() or not NAME.fullmatch(member.name):
        raise BrokenTar(f"{where}: member {member.name!r} is not a field of a sample; build this shard again")
    if not 0 <= member.size <= MEMBER_LIMIT:
        raise BrokenTar(f"{where}: member {member.name} has {member.size} bytes; build this shard again")
