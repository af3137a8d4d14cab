"""Kill -9 at random moments of flow and worker, again and again: the dataset ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

BIN = Path(sys.executable).parent
CHECKOUT = Path(__file__).parents[2]
FLOW_KILLS = 20
WORKER_KILLS = 10
SEED = 20
START_SECONDS = 45


def started(command: list[str], server: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen(
            command, env=server, cwd=CHECKOUT, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL
        )


def unfinished(out: Path) -> bool:
    """Whether something lies there that a finished build would not leave, or receipts are fewer than shards."""
    shards = sum(json.loads(stage.read_bytes())["shards"] for stage in out.glob("*/_meta/stage.json"))
    receipts = len(list(out.glob("*/_meta/receipts/*.json")))
    return receipts < shards or (out / "_spool").exists()


def await_activity(out: Path, before: set[Path], process: subprocess.Popen[bytes], seconds: float) -> None:
    """Until OUT changes, or the build ends, or time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if set(out.rglob("*")) != before:
            return
        time.sleep(0.01)


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_flow_killed_at_random_moments(
    server: dict[str, str], small_recipe: Path, reference: Path, contents: Any, twinset: Any, tmp_path: Path
) -> None:
    chance, out, log = random.Random(SEED), tmp_path / "out", tmp_path / "log"
    midway = 0
    command = [str(BIN / "twinset"), "build", str(small_recipe), "--out", str(out), "--workers", "2"]
    for _ in range(FLOW_KILLS):
        before = set(out.rglob("*"))
        process = started(command, server, log)
        await_activity(out, before, process, START_SECONDS)
        time.sleep(chance.uniform(0, 2.5))
        process.kill()
        process.wait()
        midway += unfinished(out)
        if not unfinished(out):
            # It was done before the blow: check, and start over so that the next blow finds work.
            assert twinset(*command[1:]).returncode == 0
            assert contents(out) == contents(reference)
            shutil.rmtree(out)
    assert midway >= FLOW_KILLS // 4, log.read_text()[-2000:]
    result = twinset(*command[1:])
    assert result.returncode == 0, result.stderr
    assert contents(out) == contents(reference)
    assert twinset("verify", out, "--media").returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_worker_and_its_flow_killed_at_random_moments(
    prefect: Any,
    start_worker: Any,
    small_recipe: Path,
    reference: Path,
    contents: Any,
    twinset: Any,
    tmp_path: Path,
) -> None:
    chance, out = random.Random(SEED), tmp_path / "out"
    parameters = [f"--param=recipe={json.dumps(str(small_recipe))}", f"--param=out={json.dumps(str(out))}"]
    midway = 0
    for _ in range(WORKER_KILLS):
        if not unfinished(out):
            shutil.rmtree(out, ignore_errors=True)
        before = set(out.rglob("*"))
        worker = start_worker("main")
        asked = prefect("deployment", "run", "build-eqben/local", *parameters)
        assert asked.returncode == 0, asked.stdout + asked.stderr
        await_activity(out, before, worker, START_SECONDS)
        time.sleep(chance.uniform(0, 2.5))
        flows = psutil.Process(worker.pid).children(recursive=True)
        victim = chance.choice(["flow", "worker", "both"])
        if victim in ("worker", "both"):
            worker.kill()
        if victim in ("flow", "both"):
            kill_all(flows)
        midway += unfinished(out)
        worker.kill()
        worker.wait()
        # A worker's orphan may go on writing beside the next run, as on a cluster.
        if chance.random() < 0.5:
            kill_all(flows)
    for flow in psutil.wait_procs(flows, timeout=120)[1]:
        flow.kill()
    assert midway >= 1, (tmp_path / "main.log").read_text()[-2000:]
    result = twinset("build", small_recipe, "--out", out)
    assert result.returncode == 0, result.stderr
    assert contents(out) == contents(reference)
    assert twinset("verify", out, "--media").returncode == 0


def descendant(worker: subprocess.Popen[bytes], module: str) -> psutil.Process:
    """The process below a worker that runs ``python -m MODULE``."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for process in psutil.Process(worker.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if module in process.cmdline():
                    return process
        time.sleep(0.05)
    pytest.fail(f"no process of {module} below the worker")


def events(server: dict[str, str], run: str) -> set[str]:
    """Names of the events of a flow run that the server has seen."""
    asked = {"filter": {"resource": {"id": [f"prefect.flow-run.{run}"]}}, "limit": 50}
    request = urllib.request.Request(
        f"{server['PREFECT_API_URL']}/events/filter",
        data=json.dumps(asked).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {event["event"] for event in json.load(answer)["events"]}


def until(event: str, server: dict[str, str], run: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if event in events(server, run):
            return
        time.sleep(2)
    pytest.fail(f"no {event} in {seconds} s; seen: {events(server, run)}")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_zombie_is_marked_crashed_and_its_retry_resumes(
    prefect: Any, start_worker: Any, server: dict[str, str], twinset: Any, contents: Any, tmp_path: Path
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
    descendant(worker, "flows.isolated").suspend()
    until("prefect.flow-run.heartbeat", server, run, 90)
    flows = psutil.Process(worker.pid).children(recursive=True)
    worker.kill()
    kill_all(flows)
    until("prefect.flow-run.Crashed", server, run, 240)
    start_worker("main")
    retried = prefect("flow-run", "retry", run)
    assert retried.returncode == 0, retried.stdout + retried.stderr
    until("prefect.flow-run.Completed", server, run, 120)
    assert twinset("build", "demo", "--only", "eq-youcook2", "--out", tmp_path / "whole").returncode == 0
    assert contents(out) == contents(tmp_path / "whole")
