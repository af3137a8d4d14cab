"""A parse that is killed, interrupted or loses a worker: the same call ends with the same bytes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from manifests.errors import BuildFailed
from tests.generators.scene_graphs.parsed_folders import SHARD, contents, parse

ROOT = Path(__file__).resolve().parents[3]
END_SECONDS = 30.0


def test_killed_and_resumed(own_tsv: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = (
        "import sys; from pathlib import Path; from generators.scene_graphs.parse import parse_captions; "
        f"parse_captions([Path(sys.argv[1])], sys.argv[2], workers=2, shard_size={SHARD})"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(own_tsv), str(out)], cwd=ROOT)
    receipts = out / "_meta" / "receipts"
    _wait_for(lambda: process.poll() is not None or (receipts.is_dir() and any(receipts.iterdir())), 120)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    assert process.wait() == -9
    _wait_for(lambda: not any(child.is_running() and child.status() != "zombie" for child in children))
    before = contents(out)
    assert "_meta/index.json" not in before
    finished = {name for name in before if name.startswith("_meta/receipts/")}
    times = {name: (out / name).stat().st_mtime_ns for name in finished}
    parse(own_tsv, out)
    assert contents(out) == contents(whole)
    assert finished and all((out / name).stat().st_mtime_ns == times[name] for name in finished)


@pytest.mark.slow
def test_two_interrupts_end_it_at_once_and_the_same_call_resumes(own_tsv: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = (
        "import sys; from pathlib import Path; from generators.scene_graphs.parse import parse_captions; "
        f"parse_captions([Path(sys.argv[1])], sys.argv[2], workers=2, shard_size={SHARD})"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(own_tsv), str(out)], cwd=ROOT, start_new_session=True)
    receipts = out / "_meta" / "receipts"
    _wait_for(lambda: process.poll() is not None or (receipts.is_dir() and any(receipts.iterdir())), 120)
    for _ in range(2):  # as a terminal does: the whole group gets them
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    assert process.wait(END_SECONDS) != 0
    assert "_meta/index.json" not in contents(out)
    parse(own_tsv, out)
    assert contents(out) == contents(whole)


@pytest.mark.slow
def test_a_worker_that_dies_is_said_and_the_same_call_resumes(own_tsv: Path, whole: Path, tmp_path: Path) -> None:
    out, ended = tmp_path / "out", threading.Event()

    def kill_one() -> None:
        while not ended.wait(0.01):
            workers_now = [c for c in psutil.Process().children() if any("spawn_main" in word for word in c.cmdline())]
            if workers_now and (out / "_meta/receipts").is_dir():
                workers_now[0].kill()
                return

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        with pytest.raises(BuildFailed, match=r"a process that parsed captions died.*run the same command again"):
            parse(own_tsv, out, 2, SHARD)
    finally:
        ended.set()
        killer.join()
    parse(own_tsv, out)
    assert contents(out) == contents(whole)


def _wait_for(condition: Callable[[], bool], seconds: float = END_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
