"""Kill -9 at random moments of flow and worker, again and again: the dataset ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

FLOW_KILLS = 20
WORKER_KILLS = 10
TRIES = 3  # a kill; builds that were done before the blow do not count
SEED = 20
START_SECONDS = 45
CRASH_SECONDS = 30


def listing(out: Path) -> set[str]:
    """Everything below OUT, while others write there."""
    return {os.path.join(folder, name) for folder, _, names in os.walk(out) for name in ("", *names)}


def await_activity(out: Path, before: set[str], process: subprocess.Popen[bytes]) -> None:
    """Until OUT changes, or the process ends."""
    deadline = time.monotonic() + START_SECONDS
    while listing(out) == before and process.poll() is None:
        if time.monotonic() > deadline:
            pytest.fail(f"nothing happened in {out} within {START_SECONDS} s")
        time.sleep(0.01)


def is_finished(out: Path, contents: Any, whole: dict[str, bytes]) -> bool:
    """Whether the build had nothing left to do."""
    try:
        return bool(contents(out) == whole)
    except FileNotFoundError:  # went while it was looked at: somebody is at work
        return False


@pytest.fixture(scope="module")
def life(twinset: Any, small_recipe: Path, reference: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds from the first file to the last of a build that nobody disturbs."""
    out = tmp_path_factory.mktemp("life") / "out"
    assert twinset("build", small_recipe, "--out", out, "--workers", "2").returncode == 0
    times = [path.stat().st_mtime for path in out.rglob("*") if path.is_file()]
    return max(times) - min(times)


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_flow_killed_at_random_moments(
    start_twinset: Any, small_recipe: Path, reference: Path, contents: Any, twinset: Any, life: float, tmp_path: Path
) -> None:
    chance, out, whole = random.Random(SEED), tmp_path / "out", contents(reference)
    command = ("build", small_recipe, "--out", out, "--workers", "2")
    midway = 0
    for _ in range(FLOW_KILLS * TRIES):
        before = listing(out)
        process = start_twinset(*command)
        await_activity(out, before, process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, life))
        process.kill()
        assert process.wait() in (0, -9), (tmp_path / "log").read_text()[-2000:]
        if process.returncode == 0 or is_finished(out, contents, whole):
            assert contents(out) == whole
            shutil.rmtree(out)
            continue
        midway += 1
        if midway == FLOW_KILLS:
            break
    assert midway == FLOW_KILLS
    result = twinset(*command)
    assert result.returncode == 0, result.stderr
    assert contents(out) == whole
    assert twinset("verify", out, "--media").returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_worker_and_its_flow_killed_at_random_moments(
    start_worker: Any,
    api: Any,
    small_recipe: Path,
    reference: Path,
    contents: Any,
    twinset: Any,
    life: float,
    tmp_path: Path,
) -> None:
    chance, out, whole = random.Random(SEED), tmp_path / "out", contents(reference)
    midway = dict.fromkeys(("flow", "worker", "both"), 0)
    worker = start_worker("main")
    orphans: list[psutil.Process] = []
    for _ in range(WORKER_KILLS * TRIES):
        before = listing(out)
        if worker.poll() is not None:
            worker = start_worker("main")
        run = api.start_run("build-eqben/local", recipe=str(small_recipe), out=str(out))
        await_activity(out, before, worker)
        time.sleep(chance.uniform(0, life))
        flows = psutil.Process(worker.pid).children(recursive=True)
        # The one that was met least, so that each is met several times.
        victim = min(chance.sample(sorted(midway), 3), key=lambda one: midway[one])
        if victim in ("worker", "both"):
            worker.kill()
            worker.wait()
        # A worker's orphan may go on writing beside the next run, as on a cluster.
        if victim in ("flow", "both") or chance.random() < 0.5:
            kill_all(flows)
        finished = is_finished(out, contents, whole)
        if victim == "flow" and not finished:
            api.until("prefect.flow-run.Crashed", run, CRASH_SECONDS)
        elif victim != "flow":
            api.crash(run)
        orphans += flows
        if finished:
            kill_all(psutil.wait_procs(orphans, timeout=60)[1])
            assert contents(out) == whole
            shutil.rmtree(out)
            continue
        midway[victim] += 1
        if sum(midway.values()) == WORKER_KILLS:
            break
    assert sum(midway.values()) == WORKER_KILLS and min(midway.values()) > 1, midway
    assert not psutil.wait_procs(orphans, timeout=60)[1], "an orphan does not end"
    result = twinset("build", small_recipe, "--out", out)
    assert result.returncode == 0, result.stderr
    assert contents(out) == whole
    assert twinset("verify", out, "--media").returncode == 0
