"""Kill -9 at random moments of flow and worker, again and again: the dataset ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

BIN = Path(sys.executable).parent
CHECKOUT = Path(__file__).parents[2]
FLOW_KILLS = 20
WORKER_KILLS = 10
SEED = 20
START_SECONDS = 120


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


@pytest.fixture
def deploy(server: dict[str, str]) -> Iterator[dict[str, str]]:
    for arguments in (
        ("work-pool", "create", "main", "--type", "process", "--overwrite"),
        ("--no-prompt", "deploy", "--all"),
    ):
        done = subprocess.run(
            [str(BIN / "prefect"), *arguments], env=server, cwd=CHECKOUT, capture_output=True, text=True, timeout=120
        )
        if arguments[0] == "--no-prompt":
            assert done.returncode == 0 or "work pool" in done.stdout, done.stdout + done.stderr
    yield {**server, "PREFECT_WORKER_QUERY_SECONDS": "1"}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_worker_and_its_flow_killed_at_random_moments(
    deploy: dict[str, str], small_recipe: Path, reference: Path, contents: Any, twinset: Any, tmp_path: Path
) -> None:
    chance, out, log = random.Random(SEED), tmp_path / "out", tmp_path / "log"
    parameters = [f"--param=recipe={json.dumps(str(small_recipe))}", f"--param=out={json.dumps(str(out))}"]
    midway = 0
    for _ in range(WORKER_KILLS):
        before = set(out.rglob("*"))
        worker = started([str(BIN / "prefect"), "worker", "start", "--pool", "main"], deploy, log)
        asked = subprocess.run(
            [str(BIN / "prefect"), "deployment", "run", "build-eqben/local", *parameters],
            env=deploy,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert asked.returncode == 0, asked.stdout + asked.stderr
        await_activity(out, before, worker, START_SECONDS)
        time.sleep(chance.uniform(0, 2.5))
        flows = psutil.Process(worker.pid).children(recursive=True)
        victim = chance.choice(["flow", "worker", "both"])
        if victim in ("worker", "both"):
            worker.kill()
        if victim in ("flow", "both"):
            for flow in flows:
                os.kill(flow.pid, signal.SIGKILL)
        time.sleep(0.2)
        midway += unfinished(out)
        if victim == "flow":
            worker.kill()
        worker.wait()
        # A worker's orphan goes on writing beside the next run, as on a cluster; it is ended before bytes are compared.
        orphans = [flow for flow in flows if flow.is_running()]
        if chance.random() < 0.5:
            psutil.wait_procs(orphans, timeout=60)
    for orphan in psutil.wait_procs(orphans, timeout=120)[1]:
        orphan.kill()
    assert midway >= 1, log.read_text()[-2000:]
    result = twinset("build", small_recipe, "--out", out)
    assert result.returncode == 0, result.stderr
    assert contents(out) == contents(reference)
    assert twinset("verify", out, "--media").returncode == 0
