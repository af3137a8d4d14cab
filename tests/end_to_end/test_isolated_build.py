"""Shards that are made in child processes (dlib's faces): the same on each runner, and nothing remains of the dead."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

YOUCOOK2 = ("build", "demo", "--only", "eq-youcook2", "--workers", "2")
SECONDS = 60
END_SECONDS = 10
MARK = "TWINSET_TEST_MARK"  # in the environment of everything that a build starts


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, twinset: Any, contents: Any) -> dict[str, bytes]:
    """The contents of eq-youcook2 as two threads make it."""
    out = tmp_path_factory.mktemp("youcook2") / "out"
    result = twinset(*YOUCOOK2, "--out", out)
    assert result.returncode == 0, result.stderr
    found: dict[str, bytes] = contents(out)
    return found


def marked(mark: str) -> list[psutil.Process]:
    """Processes that carry the mark."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                found.append(process)
    return found


def still_marked(mark: str) -> list[psutil.Process]:
    """Processes that carry the mark after some seconds, in which what watches over others may end too."""
    deadline = time.monotonic() + END_SECONDS
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def stopped_at_work(build: subprocess.Popen[bytes], out: Path) -> psutil.Process:
    """A child stopped while it makes a shard: it holds a folder in the spool, which bears its id."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and build.poll() is None:
        for child in psutil.Process(build.pid).children():
            with contextlib.suppress(psutil.Error):
                if "stages.child_processes" in child.cmdline() and any((out / "_spool").glob(f"*.{child.pid}.*")):
                    child.suspend()
                    if any((out / "_spool").glob(f"*.{child.pid}.*")):
                        return child
                    child.resume()
        time.sleep(0.005)
    pytest.fail("no child was met at work")


def test_a_killed_child_fails_its_shard_alone(
    start_twinset: Any, twinset: Any, uninterrupted: Any, contents: Any, tmp_path: Path
) -> None:
    out, mark = tmp_path / "out", uuid.uuid4().hex
    build = start_twinset(*YOUCOOK2, "--out", out, **{MARK: mark})
    stopped_at_work(build, out).kill()
    assert build.wait(SECONDS) == 1
    log = (tmp_path / "log").read_text()
    assert "1 of 5 shards failed" in log and "eq-youcook2 shard 0000" in log and "signal 9" in log, log[-2000:]
    assert still_marked(mark) == []
    assert len(os.listdir(out / "eq-youcook2/_meta/receipts")) == 4
    result = twinset(*YOUCOOK2, "--out", out)
    assert result.returncode == 0, result.stderr
    assert contents(out) == uninterrupted


@pytest.mark.slow
def test_children_end_with_a_killed_build(
    start_twinset: Any, twinset: Any, uninterrupted: Any, contents: Any, tmp_path: Path
) -> None:
    out, mark = tmp_path / "out", uuid.uuid4().hex
    build = start_twinset(*YOUCOOK2, "--out", out, **{MARK: mark})
    child = stopped_at_work(build, out)
    build.kill()
    build.wait()
    child.resume()
    assert still_marked(mark) == []
    result = twinset(*YOUCOOK2, "--out", out)
    assert result.returncode == 0, result.stderr
    assert contents(out) == uninterrupted


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["processes", "ray", "dask"])
def test_children_on_each_runner(runner: str, twinset: Any, uninterrupted: Any, contents: Any, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    result = twinset(*YOUCOOK2, "--out", tmp_path / "out", "--runner", runner, **{MARK: mark})
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == uninterrupted
    assert still_marked(mark) == []
