"""The tar writer: fixed bytes, which every reader of tars understands."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest
import webdataset

from twinset.shards.storage.tar_reader import CHUNK, TarWriter

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


def test_the_bytes_never_change(tmp_path: Path) -> None:
    tar = write(tmp_path / "tar")
    content = (tmp_path / "tar").read_bytes()
    assert hashlib.sha256(content).hexdigest() == tar.sha256 == GOLDEN
    assert len(content) == tar.size == 10240


def test_the_bytes_are_those_of_pythons_own_tarfile(tmp_path: Path) -> None:
    write(tmp_path / "tar")
    expected = io.BytesIO()
    with tarfile.open(fileobj=expected, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for key, fields in SAMPLES.items():
            for field, content in fields:
                header = tarfile.TarInfo(f"{key}.{field}")
                header.size, header.mode = len(content), 0o644
                tar.addfile(header, io.BytesIO(content))
    assert (tmp_path / "tar").read_bytes() == expected.getvalue()


@pytest.mark.parametrize("size", [CHUNK - 512, CHUNK - 511, CHUNK, 3 * CHUNK + 1, 10 * CHUNK])
def test_members_of_any_size_come_back_whole(tmp_path: Path, size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    members = {"a.bin": content[:size], "b.bin": b"", "c.bin": content[: size // 3]}
    with TarWriter(tmp_path / "tar") as tar:
        for name, field in members.items():
            tar.add(name, field)
    written = (tmp_path / "tar").read_bytes()
    assert (hashlib.sha256(written).hexdigest(), len(written)) == (tar.sha256, tar.size)
    assert len(written) % tarfile.RECORDSIZE == 0
    with tarfile.open(tmp_path / "tar") as opened:
        for member in opened:
            file = opened.extractfile(member)
            assert file is not None and file.read() == members.pop(member.name)
            assert (member.mode, member.mtime, member.uid, member.gid, member.uname) == (0o644, 0, 0, 0, "")
    assert not members


def test_webdataset_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "00000.tar")
    rows = list(webdataset.WebDataset([str(tmp_path / "00000.tar")], shardshuffle=False))
    assert [row["__key__"] for row in rows] == list(SAMPLES)
    for row in rows:
        assert {field: row[field] for field, _ in SAMPLES[row["__key__"]]} == dict(SAMPLES[row["__key__"]])


def test_nothing_is_created_without_members(tmp_path: Path) -> None:
    with TarWriter(tmp_path / "tar") as tar:
        pass
    assert (tar.sha256, tar.size) == ("", 0)
    assert not (tmp_path / "tar").exists()


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "tar")
    with pytest.raises(FileExistsError):
        write(tmp_path / "tar")


def test_an_error_within_leaves_no_end_mark(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="generator"), TarWriter(tmp_path / "tar") as tar:
        tar.add("a.bin", b"x" * (2 * CHUNK))
        raise RuntimeError("generator")
    assert not (tmp_path / "tar").read_bytes().endswith(bytes(1024))


@pytest.mark.parametrize("name", ["x" * 101, f"{'x' * 60}/{'y' * 60}", "é.txt"])
def test_names_that_the_format_cannot_hold_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError), TarWriter(tmp_path / "tar") as tar:
        tar.add(name, b"")
    assert not (tmp_path / "tar").exists()
