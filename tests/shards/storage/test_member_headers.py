"""Headers of tars that others wrote: the same members as tarfile finds, and nothing that a tar does not hold."""

import io
import random
import tarfile
from pathlib import Path

import pytest
import webdataset

from twinset.shards.storage.member_headers import MemberHeaders
from twinset.shards.storage.tar_reader import BrokenTar


def test_headers_that_lie_are_refused(tmp_path: Path) -> None:
    pax = tarfile.TarInfo("x")
    pax.type = tarfile.XHDTYPE
    said = b"9" * 5000 + b" path=x\n"
    pax.size = len(said)
    content = pax.tobuf(tarfile.USTAR_FORMAT) + said + bytes(-len(said) % 512) + bytes(1024)
    with pytest.raises(BrokenTar, match="a damaged pax header"):
        list(MemberHeaders(lambda place, size: content[place : place + size], len(content), "t"))
    pax.size = 3 << 30
    content = pax.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(BrokenTar, match="a name or header of 3,221,225,472 bytes"):
        list(MemberHeaders(lambda place, size: content[place : place + size], len(content), "t"))


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_headers_are_read_as_tarfile_reads_them(tmp_path: Path, format: int) -> None:
    random_numbers = random.Random(5)
    path = tmp_path / "any.tar"
    with tarfile.open(path, "w", format=format) as tar:
        for n in range(40):
            member = tarfile.TarInfo(f"folder/{'long/' * random_numbers.randrange(18)}{n}.jpg")
            member.size, member.mtime = random_numbers.randrange(5000), random_numbers.random() * 1e9
            if format != tarfile.PAX_FORMAT:
                member.mtime = int(member.mtime)
            tar.addfile(member, io.BytesIO(bytes(member.size)))
            folder = tarfile.TarInfo(f"folder{n}")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
    content = path.read_bytes()
    with tarfile.open(path) as tar:
        expected = [(one.name, one.offset_data, one.size) for one in tar if one.isreg()]
    assert list(MemberHeaders(lambda place, size: content[place : place + size], len(content), "t")) == expected


def test_mutated_headers_are_refused_or_read(tmp_path: Path) -> None:
    with webdataset.TarWriter(str(tmp_path / "any.tar")) as tar:  # a pax header before each member
        for n in range(4):
            tar.write(
                {"__key__": f"{n:09d}", "jpg": bytes(700), "json": {"caption": f"picture {n}"}, "txt": f"picture {n}"}
            )
    content = bytearray((tmp_path / "any.tar").read_bytes())
    random_numbers = random.Random(11)
    for _ in range(2000):
        mutated = bytearray(content)
        for _ in range(random_numbers.randrange(1, 4)):
            mutated[random_numbers.randrange(len(mutated))] = random_numbers.randrange(256)
        held = bytes(mutated)
        try:
            found = list(MemberHeaders(lambda place, size, held=held: held[place : place + size], len(held), "t"))  # type: ignore[misc]
        except BrokenTar:
            continue
        assert all(0 <= offset <= offset + size <= len(held) for _, offset, size in found)
