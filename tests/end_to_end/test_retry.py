"""``prefect flow-run retry`` of a run whose machine or process died: it resumes, and adopts what still runs."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

CHECKOUT = Path(__file__).parents[2]
START_SECONDS = 120


def descendant(worker: subprocess.Popen[bytes], word: str) -> psutil.Process:
    """The process below a worker with this word on its command line."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for process in psutil.Process(worker.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if word in process.cmdline():
                    return process
        time.sleep(0.05)
    pytest.fail(f"no process of {word} below the worker")


def kill_below(worker: subprocess.Popen[bytes]) -> int:
    """Kill the processes of a worker's runs; returns how many there were."""
    flows = psutil.Process(worker.pid).children(recursive=True)
    for process in flows:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return len(flows)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_zombie_is_marked_crashed_and_its_retry_resumes(
    prefect: Any, start_worker: Any, api: Any, twinset: Any, contents: Any, tmp_path: Path
) -> None:
    """Worker and flow die together: the shipped automation notices, and ``prefect flow-run retry`` resumes."""
    out = tmp_path / "out"
    created = prefect("automation", "create", "--from-file", str(CHECKOUT / "flows/zombies.yaml"))
    assert created.returncode == 0, created.stdout + created.stderr
    worker = start_worker("main", PREFECT_FLOWS_HEARTBEAT_FREQUENCY="30")
    given = ['--param=recipe="demo"', '--param=only=["eq-youcook2"]', f"--param=out={json.dumps(str(out))}"]
    asked = prefect("deployment", "run", "build-eqben/local", *given)
    run = next(word for word in asked.stdout.split() if word.count("-") == 4)
    # The first heartbeat comes after 30 s: the build is held up that long by stopping the process that makes a shard.
    descendant(worker, "stages.child_processes").suspend()
    api.until("prefect.flow-run.heartbeat", run, 90)
    psutil.Process(worker.pid).suspend()  # it must not see its run die
    assert kill_below(worker) > 0
    worker.kill()
    api.until("prefect.flow-run.Crashed", run, 240)
    start_worker("main")
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    api.until("prefect.flow-run.Completed", run, 120)
    assert twinset("build", "demo", "--only", "eq-youcook2", "--out", tmp_path / "whole").returncode == 0
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_retried_parent_adopts_its_children(
    prefect: Any, start_worker: Any, api: Any, small_recipe: Path, reference: Path, contents: Any, tmp_path: Path
) -> None:
    """The parent dies while its shards are made elsewhere: nothing is handed out twice."""
    out = tmp_path / "out"
    main = start_worker("main")
    given = {"recipe": str(small_recipe), "out": str(out), "shards_a_run": 2}
    run = api.start_run("build-eqben/cpu", **given)

    def children() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = api.runs_of("build-shards/cpu")
        return [child for child in found if child["parameters"]["out"] == str(out)]

    def wait_for(what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not what():
            logs = "".join(log.read_text()[-2000:] for log in tmp_path.glob("*.log"))
            assert time.monotonic() < deadline, logs
            time.sleep(0.05)

    # No worker takes them yet: the parent dies when some of them are done, some at work and some still waiting.
    stages = [out / name / "_meta/stage.json" for name in ("eq-ag", "eq-gebc")]
    wait_for(lambda: all(stage.exists() for stage in stages))
    shards = [json.loads(stage.read_bytes())["shards"] for stage in stages]
    ranges = sum(-(-number // 2) for number in shards)
    wait_for(lambda: len(children()) == ranges)
    start_worker("cpu", limit=2)
    wait_for(lambda: any(out.glob("*/_meta/receipts/*")))
    assert kill_below(main) > 0
    assert len(list(out.glob("*/_meta/receipts/*"))) < sum(shards)
    api.until("prefect.flow-run.Crashed", run, 30)
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    api.until("prefect.flow-run.Completed", run, 300)

    assert contents(out) == contents(reference)
    by_range = defaultdict(list)
    for child in children():
        times = [datetime.fromisoformat(child[key].replace("Z", "+00:00")) for key in ("start_time", "end_time")]
        by_range[tuple(child["parameters"][key] for key in ("subset", "first", "last"))].append(times)
    assert len(by_range) == ranges
    for times in by_range.values():
        earlier_and_later = zip(sorted(times), sorted(times)[1:], strict=False)
        assert all(earlier[1] <= later[0] for earlier, later in earlier_and_later), by_range
