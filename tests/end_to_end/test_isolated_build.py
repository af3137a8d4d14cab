"""Shards that are made in child processes (dlib's faces): nothing remains of the dead."""

import contextlib
import re
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

YOUCOOK2 = ("build", "demo", "--only", "eq-youcook2", "--workers", "2")
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


def at_work(build: subprocess.Popen[bytes], out: Path) -> psutil.Process | None:
    """A child that has been stopped while it makes a shard: it holds a folder in the spool, which bears its id."""
    for child in psutil.Process(build.pid).children():
        with contextlib.suppress(psutil.Error):
            if any((out / "_spool").glob(f"*.{child.pid}.*")):
                child.suspend()
                if any((out / "_spool").glob(f"*.{child.pid}.*")):
                    return child
                child.resume()
    return None


@pytest.mark.slow  # tests/stages says it of drawn sources
def test_the_shard_of_a_killed_child_is_made_again(
    start_twinset: Any, uninterrupted: Any, contents: Any, until: Any, tmp_path: Path
) -> None:
    out, mark = tmp_path / "out", uuid.uuid4().hex
    build = start_twinset(*YOUCOOK2, "--out", out, **{MARK: mark})
    until(lambda: at_work(build, out), 0.005).kill()
    log = tmp_path / "log"
    assert build.wait() == 0, log.read_text()[-2000:]
    assert re.search(r"eq-youcook2 shard 0000\d: its process died \(signal 9\); made again at the end", log.read_text())
    until(lambda: not marked(mark))
    assert contents(out) == uninterrupted


@pytest.mark.slow
def test_children_end_with_a_killed_build(
    start_twinset: Any, twinset: Any, uninterrupted: Any, contents: Any, until: Any, tmp_path: Path
) -> None:
    out, mark = tmp_path / "out", uuid.uuid4().hex
    build = start_twinset(*YOUCOOK2, "--out", out, **{MARK: mark})
    child = until(lambda: at_work(build, out), 0.005)
    build.kill()
    build.wait()
    child.resume()
    until(lambda: not marked(mark))
    result = twinset(*YOUCOOK2, "--out", out)
    assert result.returncode == 0, result.stderr
    assert contents(out) == uninterrupted


@pytest.mark.slow
def test_interrupted_it_ends_with_its_children_and_their_files(start_twinset: Any, until: Any, tmp_path: Path) -> None:
    out, mark, scratch = tmp_path / "out", uuid.uuid4().hex, tmp_path / "scratch"
    scratch.mkdir()
    build = start_twinset(*YOUCOOK2, "--out", out, **{MARK: mark, "TMPDIR": str(scratch)})
    child = until(lambda: at_work(build, out), 0.005)
    child.resume()
    build.send_signal(signal.SIGINT)
    assert build.wait() == 1
    until(lambda: not marked(mark))
    assert not list(scratch.glob("twinset-*"))
    assert "interrupted; the same command resumes" in (tmp_path / "log").read_text()
