"""``prefect deployment run`` on a real server and real workers, from the shipped prefect.yaml."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BIN = Path(sys.executable).parent
CHECKOUT = Path(__file__).parents[2]
RUN_SECONDS = 240


def prefect(server: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "prefect"), *arguments],
        env=server,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def deployed(server: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server with all deployments of prefect.yaml, and a worker on the pools ``main`` and ``cpu``."""
    for pool in ("main", "cpu", "render", "gpu"):
        created = prefect(server, "work-pool", "create", pool, "--type", "process", "--overwrite")
        assert created.returncode == 0, created.stdout + created.stderr
    deployed = prefect(server, "--no-prompt", "deploy", "--all")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    logs = tmp_path_factory.mktemp("workers")
    workers = []
    for pool in ("main", "cpu"):
        with (logs / pool).open("w") as log:
            command = [str(BIN / "prefect"), "worker", "start", "--pool", pool]
            environment = {**server, "PREFECT_WORKER_QUERY_SECONDS": "1"}
            workers.append(
                subprocess.Popen(command, env=environment, cwd=CHECKOUT, stdout=log, stderr=log, start_new_session=True)
            )
    yield server
    for worker in workers:
        os.killpg(worker.pid, signal.SIGTERM)
        worker.wait(60)


def run(server: dict[str, str], name: str, **parameters: Any) -> subprocess.CompletedProcess[str]:
    given = [f"--param={key}={json.dumps(value)}" for key, value in parameters.items()]
    return prefect(server, "deployment", "run", name, "--watch", *given)


def test_local_deployment_builds_the_same_bytes(
    deployed: dict[str, str], small_recipe: Path, reference: Path, contents: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run(deployed, "build-eqben/local", recipe=str(small_recipe), out=str(out))
    assert result.returncode == 0, result.stdout + result.stderr
    assert contents(out) == contents(reference)


def test_shards_in_a_work_pool_make_the_same_bytes(
    deployed: dict[str, str], small_recipe: Path, reference: Path, contents: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = run(deployed, "build-eqben/cpu", recipe=str(small_recipe), out=str(out), shards_a_run=4)
    assert result.returncode == 0, result.stdout + result.stderr
    assert contents(out) == contents(reference)
