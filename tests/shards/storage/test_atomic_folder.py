"""A folder is there whole or not at all, and the first to finish wins."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from twinset.shards.storage.whole_file import atomic_folder

REMEDY = "name another folder"

DIES = """
import os, pathlib
from twinset.shards.storage.whole_file import atomic_folder
with atomic_folder(pathlib.Path({folder!r}), "") as unfinished:
    (unfinished / "half").write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_a_folder_appears_when_all_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "things"
    with atomic_folder(folder, REMEDY) as unfinished:
        (unfinished / "deep").mkdir()
        (unfinished / "deep" / "one").write_text("1")
        assert not folder.exists()
    assert (folder / "deep" / "one").read_text() == "1" and stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert list(folder.parent.iterdir()) == [folder]


def test_nothing_appears_when_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic_folder(tmp_path / "things", REMEDY) as unfinished:
        (unfinished / "one").write_text("1")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_first_to_finish_wins(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "things", REMEDY) as slow:
        (slow / "by").write_text("slow")
        with atomic_folder(tmp_path / "things", REMEDY) as quick:
            (quick / "by").write_text("quick")
    assert (tmp_path / "things" / "by").read_text() == "quick" and len(list(tmp_path.iterdir())) == 1


def test_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "things").touch()
    with pytest.raises(OSError, match="things"), atomic_folder(tmp_path / "things", REMEDY):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["things"]


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = DIES.format(folder=str(tmp_path / "things"))
    killed = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False)
    assert killed.returncode == -9
    assert len(os.listdir(tmp_path)) == 1 and not (tmp_path / "things").exists()
    with atomic_folder(tmp_path / "things", REMEDY):
        pass
    assert os.listdir(tmp_path) == ["things"]


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for folder in (tmp_path / "file/things", Path("/proc/twinset/things")):
        with pytest.raises(OSError, match=r"file|twinset") as caught, atomic_folder(folder, REMEDY):
            pass
        assert any(REMEDY in note for note in caught.value.__notes__)
