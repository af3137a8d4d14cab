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
    try:
        with (
            pytest.raises(BuildFailed, match=rf"process {first.pid} on .* is building here; wait until it ends"),
            Store(str(out)).for_one_build(),
        ):
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


def test_a_folder_that_cannot_be_written_is_claimed_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build with nothing to do ends well there."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(claim, "_lock", refuse)
    with Store(str(tmp_path / "out")).for_one_build():
        pass


def test_a_build_elsewhere_that_gives_signs_of_life_is_refused(memory: Store) -> None:
    """Whatever its clock says: only that its claim changes counts."""
    ended = threading.Event()

    def another() -> None:
        for number in range(10_000):
            memory.write(CLAIM, b'{"host": "elsewhere", "process": 7, "beat": %d}' % number)
            if ended.wait(0.02):
                return

    memory.write(CLAIM, b'{"host": "elsewhere", "process": 7, "beat": -1}')
    thread = threading.Thread(target=another, daemon=True)
    thread.start()
    try:
        # "another process" where its claim is read while it is written: a store in memory shows half of it.
        with pytest.raises(BuildFailed, match=" is building here; wait"), memory.for_one_build():
            pytest.fail("two builds in one place")
    finally:
        ended.set()
        thread.join()


HERE = socket.gethostname().encode()


@pytest.mark.parametrize(
    "left",
    [
        b'{"host": "elsewhere", "process": 7}',
        *(b"", b"[1]", b'{"process": "x"}', b"[" * 100_000),
        b'{"host": "%s", "process": %d}' % (HERE, 10**30),
    ],
)
def test_a_dead_build_elsewhere_is_taken_over(memory: Store, left: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "SILENT_FOR", 0.5)
    memory.write(CLAIM, left)
    with memory.for_one_build():
        assert b'"process": %d' % os.getpid() in memory.read(CLAIM)
    assert memory.names("") == []


def test_of_builds_that_begin_together_in_a_store_one_goes_on(memory: Store) -> None:
    went_on: list[int] = []
    gate = threading.Barrier(8)

    def build() -> None:
        gate.wait()
        if memory.create(CLAIM, f'{{"process": {threading.get_ident()}}}'.encode()):
            went_on.append(1)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(went_on) == 1


def test_a_left_folder_may_name_any_number_of_a_process(tmp_path: Path) -> None:
    left = tmp_path / "_spool" / f"{socket.gethostname()}.{10**30}.a"
    left.mkdir(parents=True)
    Store(str(tmp_path)).sweep()
    assert not left.exists()


def test_a_folder_that_is_removed_is_what_the_error_says(tmp_path: Path) -> None:
    """Not the file that was missed first; nor is the claim of a build that began there since taken away."""
    out = tmp_path / "out"
    with (
        pytest.raises(BuildFailed, match=r"out: was removed while a build wrote there; run the same command again"),
        Store(str(out)).for_one_build(),
    ):
        shutil.rmtree(out)
        out.mkdir()
        (out / CLAIM).write_text("another's")
        raise FileNotFoundError(2, "No such file or directory", str(out / "eq-ag/_meta/stage.json"))
    assert (out / CLAIM).read_text() == "another's"
    with pytest.raises(FileNotFoundError, match="stage"), Store(str(tmp_path / "whole")).for_one_build():
        raise FileNotFoundError(2, "No such file or directory", "stage.json")


def test_a_build_whose_folder_went_at_its_end_did_not_succeed(tmp_path: Path) -> None:
    """What is written last makes the folder anew, with the rest lost."""
    out = tmp_path / "out"
    with (
        pytest.raises(BuildFailed, match=r"out: was removed while a build wrote there; run the same command again"),
        Store(str(out)).for_one_build(),
    ):
        shutil.rmtree(out)
        Store(str(out)).write("sizes.json", b"{}")
    with Store(str(out)).for_one_build():
        pass
