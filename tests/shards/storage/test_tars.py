"""The tar writer: fixed bytes, which every reader of tars understands. Headers of tars that others wrote: the same
members as tarfile finds, and nothing that a tar does not hold.
"""

import hashlib
import io
import random
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
import webdataset

from twinset.shards.storage.member_headers import (
    member_headers,
    member_places,
    member_slices,
    read_members,
    tar_members,
)
from twinset.shards.storage.tar_reader import BrokenTar, TarWriter

SAMPLES = {
    "eq-x-aaaaaaaaaaaaaaaa": [
        ("image0.jpg", b"\xff\xd8" * 700),
        ("caption0.txt", "écarlate".encode()),
        ("json", b"{}"),
    ],
    "eq-x-bbbbbbbbbbbbbbbb": [("image0.jpg", b"\xff\xd8" * 256), ("caption0.txt", b""), ("json", b'{"a":1}')],
}
GOLDEN = "918791683e773c47b1a2ca48b52c64953eb529627e9e122aab28ab8175cfceb8"


def write(path: Path) -> TarWriter:
    with TarWriter(path) as tar:
        for key, fields in SAMPLES.items():
            tar.add_sample(key, fields)
    return tar


def test_the_bytes_never_change_and_are_those_of_pythons_own_tarfile(tmp_path: Path) -> None:
    tar = write(tmp_path / "tar")
    content = (tmp_path / "tar").read_bytes()
    assert hashlib.sha256(content).hexdigest() == tar.sha256 == GOLDEN and len(content) == tar.size == 10240
    expected = io.BytesIO()
    with tarfile.open(fileobj=expected, mode="w", format=tarfile.USTAR_FORMAT) as own:
        for key, fields in SAMPLES.items():
            for field, value in fields:
                header = tarfile.TarInfo(f"{key}.{field}")
                header.size, header.mode = len(value), 0o644
                own.addfile(header, io.BytesIO(value))
    assert content == expected.getvalue()


def test_webdataset_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "00000.tar")
    rows = list(webdataset.WebDataset([str(tmp_path / "00000.tar")], shardshuffle=False))
    assert [row["__key__"] for row in rows] == list(SAMPLES)
    for row in rows:
        assert {field: row[field] for field, _ in SAMPLES[row["__key__"]]} == dict(SAMPLES[row["__key__"]])


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


def sizes_of(content: bytes) -> list[tuple[str, int, int]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return [(member.name, member.offset_data, member.size) for member in tar if member.isreg()]


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_headers_are_read_as_tarfile_reads_them(format: int) -> None:
    draw, stream = random.Random(5), io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=format) as tar:
        for number in range(40):
            member = tarfile.TarInfo(f"folder/{'long/' * draw.randrange(18)}{number}.jpg")
            member.size, member.mtime = draw.randrange(5000), draw.random() * 1e9
            if format != tarfile.PAX_FORMAT:
                member.mtime = int(member.mtime)
            tar.addfile(member, io.BytesIO(bytes(member.size)))
            folder = tarfile.TarInfo(f"folder{number}")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
    assert members(stream.getvalue()) == sizes_of(stream.getvalue())


@pytest.fixture
def tar(tmp_path: Path) -> bytes:
    with TarWriter(tmp_path / "tar") as written:
        for number, size in enumerate((0, 1, 511, 512, 513, 70_000)):
            written.add(f"key-{number}.image0.jpg", bytes([number + 1]) * size)
    return (tmp_path / "tar").read_bytes()


def test_a_damaged_header_is_noticed_wherever_it_lies(tar: bytes) -> None:
    places = members(tar)
    assert places == sizes_of(tar)
    for at in (0, *(offset - 512 for _, offset, _ in places[1:])):
        for byte in range(at, at + 512, 1 if at == 0 else 37):
            if byte != at + 155:  # the space behind the checksum
                with pytest.raises(BrokenTar, match=f"TAR: byte {at}: "):
                    members(bytes([*tar[:byte], tar[byte] ^ 0x55, *tar[byte + 1 :]]))
    for length in (0, 100, 512, 1024, 1536, 60_000, len(tar) - 10_000):
        with pytest.raises(BrokenTar, match="cut short"):
            members(tar[:length])
    for longer in (tar + tar, tar + bytes(2 << 20), tar + b"x"):
        with pytest.raises(BrokenTar, match="bytes follow the last member"):
            members(longer)


def test_mutated_headers_are_refused_or_read(tmp_path: Path) -> None:
    with webdataset.TarWriter(str(tmp_path / "any.tar")) as tar:  # a pax header before each member
        for n in range(4):
            tar.write({"__key__": f"{n:09d}", "jpg": bytes(700), "json": {"caption": f"picture {n}"}, "txt": "picture"})
    content, draw = (tmp_path / "any.tar").read_bytes(), random.Random(11)
    for _ in range(2000):
        mutated = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            mutated[draw.randrange(len(mutated))] = draw.randrange(256)
        try:
            places = members(bytes(mutated))
        except BrokenTar:
            continue
        assert all(0 <= offset <= offset + size <= len(content) for _, offset, size in places)


@pytest.mark.parametrize("name", ["../x.jpg", "a.txt", "K.jpg"])
def test_what_a_shard_never_holds_is_refused(name: str) -> None:
    member = tarfile.TarInfo(name)
    member.type = tarfile.SYMTYPE if name == "a.txt" else tarfile.REGTYPE
    with pytest.raises(BrokenTar, match="not a field of a sample"):
        list(member_slices(io.BytesIO(member.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)), "TAR"))


def header(size: int, kind: bytes = tarfile.REGTYPE, content: bytes = b"") -> bytes:
    """A header that states a size, and what lies behind it."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def pax(content: bytes) -> bytes:
    return header(len(content), tarfile.XHDTYPE, content)


@pytest.mark.parametrize("read", [read_members, member_places])
@pytest.mark.parametrize(
    "headers",
    [
        header(1 << 60, tarfile.XHDTYPE),
        header(3 << 30, tarfile.GNUTYPE_LONGNAME),
        header(-512, tarfile.GNUTYPE_LONGNAME),
        header(1 << 30),
        header(-512),
        header(-100),
        pax(b"12 size=-512\n"),
        pax(b"30 size=99999999999999999999\n"),
        pax(b"22 GNU.sparse.map=a,b\n"),
        pax(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"),
        pax(b"9" * 5000 + b" a=b\n"),
        pax(b"") * 2000,
        header(512, tarfile.GNUTYPE_SPARSE),
    ],
)
def test_what_headers_claim_ends_in_no_traceback(
    headers: bytes, read: Callable[[BinaryIO, str], Iterator[object]]
) -> None:
    content = headers + tarfile.TarInfo("a.txt").tobuf() + bytes(1024)
    with pytest.raises(BrokenTar, match=r"TAR: .*build this shard again"):
        list(read(io.BytesIO(content), "TAR"))


def test_many_members_take_no_memory() -> None:
    """tarfile keeps all, and copies what is said of all of them for each."""
    texts = (b"12 key%03d=x\n" % number for number in range(300))
    blocks = (header(len(text), tarfile.XGLTYPE, text) + tarfile.TarInfo("a.jpg").tobuf() for text in texts)
    stream = io.BytesIO(b"".join(blocks) * 10 + bytes(1024))
    tracemalloc.start()
    assert sum(1 for _ in member_headers(stream, "TAR")) == 3000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_of_a_tar_that_is_not_whole_what_is_there_is_found(tmp_path: Path, tar: bytes) -> None:
    (tmp_path / "cut.tar").write_bytes(tar[:60_000])
    assert [path for path, *_ in tar_members(tmp_path / "cut.tar", (".jpg",)).ending_in("key-3.image0.jpg")] == [
        "key-3.image0.jpg"
    ]
    assert not list(tar_members(tmp_path / "cut.tar", (".jpg",)).ending_in("key-5.image0.jpg"))
