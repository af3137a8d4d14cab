"""A real Prefect server for the session, the miniature drawn once, and ways to run the real command lines."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.prefect_api import Api

BIN = Path(sys.executable).parent
CHECKOUT = Path(__file__).parents[2]

# Seconds to minutes on a busy machine; each wait ends as soon as it can.
SERVER_SECONDS = 90
BUILD_SECONDS = 420


@pytest.fixture(scope="session")
def miniature_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this session's miniature is drawn."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, miniature_cache: Path) -> Iterator[dict[str, str]]:
    """Environment of processes that talk to a real Prefect server on a port of its own."""
    home = tmp_path_factory.mktemp("prefect")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",  # a worker starts its runs as ``prefect flow-run execute``
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_CLI_COLORS": "false",
        "DO_NOT_TRACK": "1",
        "TWINSET_CACHE": str(miniature_cache),
    }
    log = (home / "server.log").open("w")
    command = [str(BIN / "prefect"), "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    process = subprocess.Popen(
        command, env=environment, stdout=log, stderr=log, start_new_session=True, preexec_fn=_default_interrupt
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/health", process, home / "server.log")
        yield environment
    finally:
        _end(process)
        log.close()


def _default_interrupt() -> None:
    # Prefect ends itself by SIGINT, which a shell's background jobs ignore and hand down.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its group, and what is left of the group with it."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"Prefect's server did not start:\n{log.read_text()[-2000:]}")


Twinset = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def twinset(server: dict[str, str]) -> Twinset:
    """Run ``twinset ARGUMENTS`` against the session's server; the result holds exit code, stdout and stderr."""

    def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "twinset"), *map(str, arguments)],
            env={**server, **environment},
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
        )

    return run


Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_twinset(server: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Start ``twinset ARGUMENTS``, with its output in ``log`` of the test's folder; what still runs is killed after."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str | Path, **environment: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(BIN / "twinset"), *map(str, arguments)],
                env={**server, **environment},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def api(server: dict[str, str]) -> Api:
    """The session's server."""
    return Api(server["PREFECT_API_URL"])


@pytest.fixture(scope="session")
def small_recipe(tmp_path_factory: pytest.TempPathFactory, twinset: Twinset) -> Path:
    """A recipe of the miniature's two cheap subsets in many small shards, without faces."""
    path = tmp_path_factory.mktemp("recipe") / "small.yaml"
    plan = twinset("plan", "demo", "--json")  # draws the miniature
    assert plan.returncode == 0, plan.stderr
    path.write_text(
        """
name: small
subsets:
  eq-ag:
    source: {kind: action-genome, annotations: "miniature:action_genome/annotations.pkl",
             media: "miniature:action_genome/videos"}
    shard_size: 1
  eq-gebc:
    source: {kind: gebc, annotations: "miniature:gebc/annotations.json", media: "miniature:gebc/videos"}
    filters: [{kind: motion-words}, {kind: equal-captions}]
    shard_size: 1
"""
    )
    return path


@pytest.fixture(scope="session")
def counts_of() -> Callable[[subprocess.CompletedProcess[str]], dict[str, Any]]:
    """The subsets that a command with ``--json`` printed."""

    def read(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
        assert result.returncode == 0, result.stderr
        subsets: dict[str, Any] = json.loads(result.stdout)["subsets"]
        return subsets

    return read


# Telling where and when: not part of what must be equal.
NOT_COMPARED = ("log", "recipe.json")


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Every file of a dataset that must be the same whoever made it, by relative path."""

    def read(out: Path) -> dict[str, bytes]:
        found = {}
        for path in sorted(out.rglob("*")):
            relative = path.relative_to(out)
            if path.is_file() and not set(relative.parts) & set(NOT_COMPARED):
                found[relative.as_posix()] = path.read_bytes()
        return found

    return read


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, small_recipe: Path, twinset: Twinset) -> Path:
    """The small recipe's dataset, built without interruption by two threads."""
    out = tmp_path_factory.mktemp("reference") / "out"
    result = twinset("build", small_recipe, "--out", out, "--workers", "2")
    assert result.returncode == 0, result.stderr
    return out


Prefect = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def prefect(server: dict[str, str]) -> Prefect:
    """Run ``prefect ARGUMENTS`` in the checkout against the session's server."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "prefect"), *arguments],
            env=server,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture(scope="session")
def deployments(prefect: Prefect, server: dict[str, str]) -> dict[str, str]:
    """The server with the work pools and all deployments of the shipped prefect.yaml."""
    for pool in ("main", "cpu", "render", "gpu"):
        created = prefect("work-pool", "create", pool, "--type", "process", "--overwrite")
        assert created.returncode == 0, created.stdout + created.stderr
    deployed = prefect("--no-prompt", "deploy", "--all")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    return {**server, "PREFECT_WORKER_QUERY_SECONDS": "1"}


@pytest.fixture
def start_worker(deployments: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Start a worker of a pool, of ``limit`` runs at once, with its log in ``POOL.log``; all end after the test."""
    workers: list[subprocess.Popen[bytes]] = []

    def start(pool: str, limit: int = 4, **environment: str) -> subprocess.Popen[bytes]:
        with (tmp_path / f"{pool}.log").open("ab") as log:
            worker = subprocess.Popen(
                [str(BIN / "prefect"), "worker", "start", "--pool", pool, "--limit", str(limit)],
                env={**deployments, **environment},
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_default_interrupt,
            )
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        _end(worker)
