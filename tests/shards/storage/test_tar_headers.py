"""Headers of tars read without tarfile: the same members, and nothing that a shard never holds."""

import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from twinset.shards.storage.tar_reader import BrokenTar, TarWriter, member_places, member_slices, read_members


@pytest.fixture
def tar(tmp_path: Path) -> bytes:
    with TarWriter(tmp_path / "tar") as written:
        for number, size in enumerate((0, 1, 511, 512, 513, 70_000)):
            written.add(f"key-{number}.image0.jpg", bytes([number + 1]) * size)
    return (tmp_path / "tar").read_bytes()


def slices(content: bytes) -> list[tuple[str, int, int]]:
    return list(member_slices(io.BytesIO(content), "TAR"))


def test_members_lie_where_tarfile_finds_them(tar: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(tar)) as members:
        assert slices(tar) == [(one.name, one.offset_data, one.size) for one in members]


def test_every_changed_byte_of_a_header_is_noticed(tar: bytes) -> None:
    for byte in range(512):
        with pytest.raises(BrokenTar, match="TAR: byte 0: "):
            slices(bytes([*tar[:byte], tar[byte] ^ 0x55, *tar[byte + 1 :]]))


@pytest.mark.parametrize("length", [0, 100, 512, 1024, 1536, 60_000])
def test_a_tar_that_is_cut_short_is_noticed(tar: bytes, length: int) -> None:
    with pytest.raises(BrokenTar, match="cut short"):
        slices(tar[:length])


@pytest.mark.parametrize(
    ("name", "fields"),
    [("../x.jpg", {}), ("a.txt", {"type": tarfile.SYMTYPE}), ("a.jpg", {"size": 1 << 30}), ("K.jpg", {})],
)
def test_what_a_shard_never_holds_is_refused(name: str, fields: dict[str, object]) -> None:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    with pytest.raises(BrokenTar, match=r"not a field of a sample|more than the tar"):
        slices(member.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))


def extended(comment: bytes, size: int | None = None, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """A header that says more of the next member, and what it says."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, len(comment) if size is None else size
    return member.tobuf(tarfile.GNU_FORMAT) + comment + bytes(-len(comment) % 512)


@pytest.mark.parametrize("read", [read_members, member_places])
@pytest.mark.parametrize(
    "headers",
    [
        extended(b"", 1 << 60),
        extended(b"", 1 << 60, tarfile.GNUTYPE_LONGNAME),
        extended(b"22 GNU.sparse.map=a,b\n"),
        extended(b"9" * 30 + b" a=b\n"),
        extended(b"9" * 5000 + b" a=b\n"),
    ],
    ids=["an exabyte of comments", "of a name", "map", "length", "longer than int() takes"],
)
def test_numbers_that_headers_claim_end_in_no_traceback(
    headers: bytes, read: Callable[[BinaryIO, str], Iterator[object]], tmp_path: Path
) -> None:
    (tmp_path / "tar").write_bytes(headers + tarfile.TarInfo("a.txt").tobuf() + bytes(1024))
    with (tmp_path / "tar").open("rb") as stream, pytest.raises(BrokenTar, match=r"TAR: .*build this shard again"):
        list(read(stream, "TAR"))
