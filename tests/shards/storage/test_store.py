"""A local store: files are whole or absent, the spool is swept, and trouble with the disk says what to do.

The tar writer: fixed bytes, which every reader of tars understands.

A file is there whole or not at all.
"""

import contextlib
import errno
import gc
import hashlib
import io
import os
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import webdataset

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.spool import SPOOL, temporary_folder
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import TarWriter
from twinset.shards.storage.whole_file import new_folder, whole_file
from twinset.stages.child_processes import Children


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"mounting a tmpfs needs root: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        gc.collect()  # pyarrow keeps a file open that it could not finish, as long as the error lives
        subprocess.run(["umount", str(folder)], check=True)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/out/")
    assert store.root == str(tmp_path / "out")
    assert (store.size("a/b"), store.names("a"), store.names("")) == (None, [], [])
    store.write("a/b/c.json", b"{}")
    store.write("a/b/c.json", b"[1]")
    assert (store.read("a/b/c.json"), store.size("a/b/c.json")) == (b"[1]", 3)
    assert (store.names("a"), store.names("a/b")) == (["b"], ["c.json"])
    with store.open("a/b/c.json") as stream:
        stream.seek(1)
        assert stream.read() == b"1]"
    store.remove("a/b/c.json")
    store.remove("a/b/c.json")
    with pytest.raises(FileNotFoundError):
        store.read("a/b/c.json")


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_listing_tells_sizes_and_what_was_replaced(tmp_path: Path, kind: str) -> None:
    store = Store(str(tmp_path / "out") if kind == "local" else f"memory://{tmp_path.name}/out")
    assert store.listing("a") == store.listing("") == {}
    contents = {"one": b"1", "two": b"22", "none": b""}
    for name, content in contents.items():
        store.write(f"a/{name}", content)
    store.write("a/below/file", b"")
    listed = store.listing("a")
    assert {name: entry.size for name, entry in listed.items()} == {"one": 1, "two": 2, "none": 0}
    assert store.listing("a") == listed and store.listing("a/one") == {} and store.names("a/one") == []
    store.write("a/one", b"3")
    changed = store.listing("a")
    assert {name for name in listed if listed[name] != changed[name]} == {"one"}
    store.remove("a/one")
    assert sorted(store.listing("a")) == ["none", "two"]


def test_a_reader_never_meets_half_a_file(tmp_path: Path) -> None:
    store, contents = Store(str(tmp_path)), [bytes([value]) * 300_000 for value in (1, 2)]
    store.write("file", contents[0])
    done = threading.Event()

    def rewrite() -> None:
        for number in range(60):
            store.write("file", contents[number % 2])
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        while not done.is_set():
            assert store.read("file") in contents
    finally:
        writer.join()


def test_the_sweep_takes_what_dead_processes_of_this_machine_left_and_nothing_else(tmp_path: Path) -> None:
    store, ended = Store(str(tmp_path)), subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = tmp_path / SPOOL / f"{socket.gethostname()}.{ended.pid}.abc123"
    other = tmp_path / SPOOL / f"elsewhere-{socket.gethostname()}.{ended.pid}.abc123"
    dead.mkdir(parents=True)
    other.mkdir()
    (dead / "tar").write_bytes(b"half")
    with store.spool() as alive:
        store.sweep()
        assert alive.is_dir() and other.is_dir() and not dead.exists()
    other.rmdir()
    store.sweep()
    assert not (tmp_path / SPOOL).exists()


def test_sweeping_while_others_write_harms_nobody(tmp_path: Path) -> None:
    store, failures = Store(str(tmp_path)), list[BaseException]()

    def write(number: int) -> None:
        try:
            for _ in range(40):
                store.write(f"file{number}", b"x")
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(200):
        store.sweep()
    for writer in writers:
        writer.join()
    assert failures == []


def test_a_full_disk_says_so_once_and_leaves_nothing_half_written(small_disk: Path, planned_build: Any) -> None:
    store = Store(str(small_disk / "out"))
    build = planned_build(store, "eq-x", [("a", 1, 2)], shard_size=1)
    ballast = small_disk / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as stream:
        for _ in range(2000):
            stream.write(bytes(1024))
    with pytest.raises(
        OSError, match="the disk is full, or holds as many files as it can; free some room, here or where TMPDIR points, and run the same command again"
    ) as caught:
        build.make(0)
    assert caught.value.errno == errno.ENOSPC and str(caught.value).count("free some room") == 1
    assert build.state().todo == [0] and store.names("eq-x/test") == []
    ballast.unlink()
    build.make_all()
    assert build.state().todo == []
    assert store.names(SPOOL) == []


def test_a_disk_without_room_for_one_more_file_says_so(small_disk: Path) -> None:
    """Not that it is full: bytes enough are free."""
    subprocess.run(["mount", "-o", "remount,nr_inodes=6", str(small_disk)], check=True)
    with pytest.raises(
        OSError, match=r"holds as many files as it can; free some room, here or where TMPDIR"
    ) as one:
        for number in range(10):
            Store(str(small_disk)).write(f"{number}.json", b"{}")
    assert one.value.errno == errno.ENOSPC


def test_a_disk_that_fills_up_within_a_tar_leaves_no_tar(small_disk: Path) -> None:
    from twinset.shards.storage.tar_reader import TarWriter

    store = Store(str(small_disk))
    with pytest.raises(OSError, match="the disk is full"), store.spool() as spool, TarWriter(spool / "tar") as tar:
        for number in range(40):
            tar.add(f"{number}.bin", os.urandom(100_000))
    assert store.names(SPOOL) == []


@pytest.mark.parametrize("link", ["eq-x", "eq-x/test", SPOOL])
def test_nothing_is_written_or_removed_through_a_link_below_out(tmp_path: Path, link: str) -> None:
    outside, out = tmp_path / "outside", tmp_path / "out"
    kept = outside / ("test/00000.tar" if link == "eq-x" else "00000.tar")
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"mine")
    (out / link).parent.mkdir(parents=True)
    (out / link).symlink_to(outside)
    store, path = Store(str(out)), f"{SPOOL}/00000.tar" if link == SPOOL else "eq-x/test/00000.tar"
    assert store.read(path) == b"mine"  # a downloaded data set may be made of links
    for change in (lambda: store.write(path, b"new"), lambda: store.remove(path)):
        with pytest.raises(WrongUse, match=f"out/{link}: a link to {outside}; nothing is written through a link"):
            change()
    assert [one for one in outside.rglob("*") if one.is_file()] == [kept] and kept.read_bytes() == b"mine"


def test_a_link_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/file").symlink_to(tmp_path / "outside")
    Store(str(tmp_path / "out")).write("file", b"new")
    assert (tmp_path / "out/file").read_bytes() == b"new" and (tmp_path / "outside").read_bytes() == b"mine"


def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "receipt")
    store = Store(str(tmp_path))
    for look in (store.read, store.sha256, lambda path: store.read_part(path, 0, 1)):
        with pytest.raises(WrongUse, match=r"receipt: a pipe or a device, not a file; remove it"):
            look("receipt")


def test_an_output_that_is_a_file_or_below_one_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WrongUse, match="file: is a file; name a folder"):
        Store(str(tmp_path / "file"))
    with pytest.raises(OSError, match="a part of this path is a file; name another --out"):
        Store(str(tmp_path / "file" / "out")).write("a", b"")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_read_only_output_says_so(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    out = tmp_path / "out"
    bound = subprocess.run(["mount", "--bind", str(out), str(out)], capture_output=True)
    if bound.returncode:
        out.chmod(0o555)
        if os.access(out, os.W_OK):
            pytest.skip("neither a mount nor permissions can make a folder read-only here")
        with pytest.raises(OSError, match="name another --out"):
            Store(str(out)).write("a", b"")
        return
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(out)], check=True)
        with pytest.raises(OSError, match="the file system is read-only; name another --out"):
            Store(str(out)).write("a", b"")
    finally:
        gc.collect()  # pyarrow keeps a file open that it could not finish, as long as the error lives
        subprocess.run(["umount", str(out)], check=True)


def test_temporary_folders_of_killed_processes_go_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of models that were being opened, and those of the children of a build that died with them."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f"twinset-{socket.gethostname()}.{pid}.a" for pid in (ended.pid, os.getpid())]
    for begin in (temporary_folder, lambda: contextlib.closing(Children(1))):
        for name in names:
            (tmp_path / name / "deep").mkdir(parents=True, exist_ok=True)
        with begin():
            assert [name for name in names if (tmp_path / name).exists()] == names[1:]
    assert os.listdir(tmp_path) == names[1:]


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


CHUNK = 1 << 18


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


def test_an_error_within_leaves_no_tar(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="generator"), TarWriter(tmp_path / "tar") as tar:
        tar.add("a.bin", b"x" * (2 * CHUNK))
        raise RuntimeError("generator")
    assert not (tmp_path / "tar").exists()


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
