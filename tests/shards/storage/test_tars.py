"""The tar writer's fixed bytes, and headers of tars that others wrote."""

import hashlib
import io
import random
import tarfile
from pathlib import Path

import pytest
import webdataset

from twinset.shards.rows import TarWriter
from twinset.shards.storage.tar_reader import (
    BrokenTar,
    member_headers,
    member_places,
    member_slices,
    read_members,
    tar_members,
)

SAMPLES = {
    "eq-x-aaaaaaaaaaaaaaaa": {"image0.jpg": b"\xff\xd8" * 700, "caption0.txt": "écarlate".encode(), "json": b"{}"},
    "eq-x-bbbbbbbbbbbbbbbb": {"image0.jpg": b"\xff\xd8" * 256, "caption0.txt": b"", "json": b'{"a":1}'},
}
GOLDEN = "918791683e773c47b1a2ca48b52c64953eb529627e9e122aab28ab8175cfceb8"


def write(path: Path) -> TarWriter:
    with TarWriter(path) as tar:
        for key, fields in SAMPLES.items():
            tar.add_sample(key, fields.items())
    return tar


def test_the_bytes_never_change_and_are_those_of_pythons_own_tarfile(tmp_path: Path) -> None:
    tar, expected = write(tmp_path / "00000.tar"), io.BytesIO()
    content = tar.path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == tar.sha256 == GOLDEN and len(content) == tar.size == 10240
    with tarfile.open(fileobj=expected, mode="w", format=tarfile.USTAR_FORMAT) as own:
        for key, fields in SAMPLES.items():
            for field, value in fields.items():
                member = tarfile.TarInfo(f"{key}.{field}")
                member.size, member.mode = len(value), 0o644
                own.addfile(member, io.BytesIO(value))
    assert content == expected.getvalue()
    rows = list(webdataset.WebDataset([str(tar.path)], shardshuffle=False))
    assert {row.pop("__key__"): {field: row[field] for field in row if field[0] != "_"} for row in rows} == SAMPLES


def test_no_tar_without_members_after_an_error_or_over_another(tmp_path: Path) -> None:
    with TarWriter(tmp_path / "tar") as tar:
        pass
    assert (tar.sha256, tar.size) == ("", 0)
    with pytest.raises(RuntimeError, match="generator"), TarWriter(tmp_path / "tar") as tar:
        tar.add("a.bin", b"x" * 1_000_000)
        raise RuntimeError("generator")
    for name in ("x" * 101, "é.txt"):
        with pytest.raises(ValueError, match="at most 100 ASCII"), TarWriter(tmp_path / "tar") as tar:
            tar.add(name, b"")
    assert not (tmp_path / "tar").exists()
    write(tmp_path / "tar")
    with pytest.raises(FileExistsError):
        write(tmp_path / "tar")


def members(content: bytes) -> list[tuple[str, int, int]]:
    return list(member_headers(io.BytesIO(content), "TAR"))


def of_tarfile(content: bytes) -> list[tuple[str, int, int]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return [(member.name, member.offset_data, member.size) for member in tar if member.isreg()]


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_lie_where_tarfile_finds_them(format: int) -> None:
    draw, stream = random.Random(5), io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=format) as tar:
        for number in range(40):
            member = tarfile.TarInfo(f"{'long/' * draw.randrange(18)}{number}.jpg")
            folder = tarfile.TarInfo(f"{number}")
            member.size, folder.type = draw.randrange(5000), tarfile.DIRTYPE
            tar.addfile(member, io.BytesIO(bytes(member.size)))
            tar.addfile(folder)
    assert members(stream.getvalue()) == of_tarfile(stream.getvalue())


@pytest.fixture
def tar(tmp_path: Path) -> bytes:
    with TarWriter(tmp_path / "tar") as written:
        for number, size in enumerate((0, 1, 511, 512, 513, 70_000)):
            written.add(f"key-{number}.image0.jpg", bytes([number + 1]) * size)
    return (tmp_path / "tar").read_bytes()


def test_a_tar_that_is_damaged_cut_short_or_joined_is_noticed(tar: bytes, tmp_path: Path) -> None:
    for _, offset, _ in members(tar):
        for byte in {*range(offset - 512, offset, 11)} - {offset - 357}:  # all but the space behind the checksum
            with pytest.raises(BrokenTar, match=f"TAR: byte {offset - 512}: "):
                members(bytes([*tar[:byte], tar[byte] ^ 0x55, *tar[byte + 1 :]]))
    for length in (0, 100, 512, 1024, 1536, 60_000, 73_728):
        with pytest.raises(BrokenTar, match="cut short"):
            members(tar[:length])
    for longer in (tar + tar, tar + bytes(2 << 20), tar + b"x"):
        with pytest.raises(BrokenTar, match="bytes follow the last member"):
            members(longer)
    (tmp_path / "tar").write_bytes(tar[:60_000])  # of a download that is not finished what is there is found
    places = tar_members(tmp_path / "tar", (".jpg",))
    assert [len([*places.ending_in(f"key-{number}.image0.jpg")]) for number in range(6)] == [1, 1, 1, 1, 1, 0]


def header(size: int, kind: bytes = tarfile.REGTYPE, content: bytes = b"", name: str = "a.txt") -> bytes:
    """A header that states a size, and what lies behind it."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def pax(content: bytes) -> bytes:
    return header(len(content), tarfile.XHDTYPE, content)


CLAIMS = [
    *(header(1 << 60, tarfile.XHDTYPE), header(3 << 30, tarfile.GNUTYPE_LONGNAME)),
    *(header(-512, tarfile.GNUTYPE_LONGNAME), header(1 << 30), header(-512), header(-100)),
    *(pax(b"12 size=-512\n"), pax(b"30 size=99999999999999999999\n"), pax(b"9" * 5000 + b" a=b\n"), pax(b"") * 2000),
    *(pax(b"22 GNU.sparse.map=a,b\n"), pax(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n")),
    *(header(512, tarfile.GNUTYPE_SPARSE), header(0, tarfile.SYMTYPE), header(0, name="../x"), header(0, name="K.jpg")),
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_headers_claim_ends_in_no_traceback(claim: bytes) -> None:
    content = claim + header(0) + bytes(1024)
    for read in (read_members, member_places):
        with pytest.raises(BrokenTar, match=r"TAR: .*build this shard again"):
            list(read(io.BytesIO(content), "TAR"))  # type: ignore[operator]
    with pytest.raises(BrokenTar):
        list(member_slices(io.BytesIO(content), "TAR"))
