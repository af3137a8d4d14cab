"""The tar writer: fixed bytes, which every reader of tars understands.

A file is there whole or not at all.
"""

import errno
import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import webdataset

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.tar_reader import CHUNK, TarWriter
from twinset.shards.storage.whole_file import new_folder, whole_file, write_text

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


KILLED = """
import os, signal, sys
from pathlib import Path
from twinset.shards.storage.whole_file import whole_file
with whole_file(Path(sys.argv[1])) as beside:
    beside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[3], check=False)
    (left,) = path.parent.iterdir()
    living = left.with_name(f"{left.name.rpartition('.')[0]}.1")  # the first process of any machine
    living.write_text("more")
    elsewhere = left.with_name(".file.another-machine.99")
    elsewhere.write_text("more")
    with whole_file(path) as beside:
        beside.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole" and {*path.parent.iterdir()} == {path, living, elsewhere}


def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(OSError, match="full") as raised, whole_file(path) as beside:
        beside.write_text("half")
        raise OSError(errno.ENOSPC, "full")
    assert raised.value.__notes__ == [f"{path}: free some room, or name another folder, and run the same command again"]
    with whole_file(path):
        pass  # nothing is written
    assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]


def test_long_names_are_not_mixed_up(tmp_path: Path) -> None:
    paths = [tmp_path / f"{'ä' * 120}.{ending}" for ending in ("parquet", "jsonl")]
    with whole_file(paths[0]) as first, whole_file(paths[1]) as second:
        first.write_text("first")
        second.write_text("second")
    assert [path.read_text() for path in paths] == ["first", "second"] and len([*tmp_path.iterdir()]) == 2


def test_a_block_that_fails_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_text(path, "before \ud800")
    with pytest.raises(ZeroDivisionError), whole_file(path) as beside:
        beside.write_text("half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"before ?" and [*path.parent.iterdir()] == [path]


def test_a_folder_where_a_file_system_is_mounted_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(path: Path, to: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", str(path))

    busy_said = r"cannot be made \(Device or resource busy\); name another --out"
    with monkeypatch.context() as patch, pytest.raises(WrongUse, match=busy_said):
        patch.setattr(Path, "rename", busy)
        with new_folder(tmp_path, "--out"):
            raise AssertionError
    with new_folder(tmp_path / "new", "--out") as unfinished:
        (unfinished / "a").write_text("b")
    assert (tmp_path / "new/a").read_text() == "b"
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with new_folder(".", "--out") as unfinished:
        assert Path.cwd() == tmp_path / "empty"
        (unfinished / "c").write_text("d")
    assert (tmp_path / "empty/c").read_text() == "d"
