"""One build at a time writes into OUT, and none waits for a dead one (a local folder; a store in memory)."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from twinset.contracts.errors import BuildFailed
from twinset.shards.storage import claim
from twinset.shards.storage.claim import CLAIM
from twinset.shards.storage.store import Store

HOLDS = """
import os, sys, time
from twinset.shards.storage.store import Store
with Store(sys.argv[1]).for_one_build():
    child = os.fork()  # as processes that make shards are; it outlives this one and holds nothing
    if child == 0:
        time.sleep(600)
        os._exit(0)
    print(child, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(claim, "BEAT", 0.05)
    monkeypatch.setattr(claim, "SILENT_FOR", 3600)  # what lives need not hurry
    yield Store("memory://claims/out")
    fsspec.filesystem("memory").store.clear()


def test_a_second_build_is_told_who_builds_and_a_killed_one_is_taken_over(tmp_path: Path) -> None:
    """The killed one's child lives on; the folder is free at once all the same."""
    out = tmp_path / "out"
    first = subprocess.Popen([sys.executable, "-c", HOLDS, str(out)], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    child = int(first.stdout.readline())
    taken = rf"process {first.pid} on {socket.gethostname()} is building here; wait until it ends"
    try:
        with pytest.raises(BuildFailed, match=taken), Store(str(out)).for_one_build():
            pytest.fail("two builds write into one folder")
        first.kill()
        first.wait()
        os.kill(child, 0)
        with Store(str(out)).for_one_build():
            assert (out / CLAIM).exists()
    finally:
        first.kill()
        os.kill(child, signal.SIGKILL)
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_a_thread_of_the_same_process_is_another_build(place: str, memory: Store, tmp_path: Path) -> None:
    store = memory if place == "memory" else Store(str(tmp_path / "out"))
    taken = pytest.raises(BuildFailed, match=f"process {os.getpid()} on")
    with store.for_one_build(), taken, store.for_one_build():
        pytest.fail("two builds in one place")
    with store.for_one_build():
        pass
    assert store.names("") == []


def test_a_build_elsewhere_that_gives_signs_of_life_is_refused(memory: Store) -> None:
    """Whatever its clock says: only that its claim changes counts."""
    memory.write(CLAIM, b"process 7 on elsewhere\n0\n")
    beat = threading.Timer(0.5, memory.write, (CLAIM, b"process 7 on elsewhere\n1\n"))
    beat.start()
    taken = "process 7 on elsewhere is building here; wait"
    with pytest.raises(BuildFailed, match=taken), memory.for_one_build():
        pytest.fail("two builds in one place")
    beat.join()


@pytest.mark.parametrize(
    "left", ["process 7 on elsewhere\n", "", "\x1b[2J", f"process 999999999 on {socket.gethostname()}\n"]
)
def test_a_dead_build_is_taken_over(memory: Store, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "SILENT_FOR", 0.5)
    memory.write(CLAIM, left.encode())
    with memory.for_one_build():
        assert memory.read(CLAIM).startswith(b"process %d on " % os.getpid())
    assert memory.names("") == []


def test_a_folder_that_is_removed_is_what_the_error_says(tmp_path: Path) -> None:
    """Not the file that was missed first; nor did a build succeed whose last files lie in a new folder, alone."""
    out = tmp_path / "out"
    removed = r"out, or _building in it, was removed while a build wrote there; run it again"
    with pytest.raises(BuildFailed, match=removed), Store(str(out)).for_one_build():
        shutil.rmtree(out)
        out.mkdir()
        (out / CLAIM).write_text("another's")
        raise FileNotFoundError(2, "No such file or directory", str(out / "eq-ag/_meta/stage.json"))
    assert (out / CLAIM).read_text() == "another's"
