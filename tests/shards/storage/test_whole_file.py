"""A file is there whole or not at all."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.shards.storage.whole_file import new_folder, whole_file, write_text

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
