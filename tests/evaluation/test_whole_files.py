from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.whole_files import written_whole

KILLED = """
import os, signal, sys
from pathlib import Path
from evaluation.whole_files import written_whole
with written_whole(Path(sys.argv[1])) as beside:
    beside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[2], timeout=60, check=False)
    (left,) = path.parent.iterdir()
    living = left.with_name(f"{left.name.rpartition('.')[0]}.1")  # the first process of any machine
    living.write_text("more")
    elsewhere = left.with_name(".file.another-machine.99")
    elsewhere.write_text("more")
    with written_whole(path) as beside:
        beside.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole" and {*path.parent.iterdir()} == {path, living, elsewhere}


def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(OSError, match="full") as raised, written_whole(path) as beside:
        beside.write_text("half")
        raise OSError(errno.ENOSPC, "full")
    assert raised.value.__notes__ == [f"{path}: free some room, or name another folder, and run the same command again"]
    with written_whole(path):
        pass  # nothing is written
    assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]


def test_long_names_are_not_mixed_up(tmp_path: Path) -> None:
    paths = [tmp_path / f"{'ä' * 120}.{ending}" for ending in ("parquet", "jsonl")]
    with written_whole(paths[0]) as first, written_whole(paths[1]) as second:
        first.write_text("first")
        second.write_text("second")
    assert [path.read_text() for path in paths] == ["first", "second"] and len([*tmp_path.iterdir()]) == 2
