"""A real Prefect server for the session, with the shipped deployments, and workers for its pools."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cached_builds import CHECKOUT
from tests.end_to_end.conftest import BIN, GUARD_SECONDS, Start
from tests.end_to_end.server.prefect_api import Api


class PrefectServer:
    """A Prefect server that can be killed and started again, on the same port and database.

    variables: environment of processes that talk to it.
    """

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._log = home / "server.log"
        self.variables = {
            **environment,
            "PREFECT_HOME": str(home),
            "PREFECT_API_URL": f"http://127.0.0.1:{self._port}/api",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_CLI_COLORS": "false",
            "DO_NOT_TRACK": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it answers."""
        command = [str(BIN / "prefect"), "server", "start", "--host", "127.0.0.1", "--port", str(self._port), "--no-ui"]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                command,
                env=self.variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _wait_for(f"http://127.0.0.1:{self._port}/api/health", self._process, self._log)

    def kill(self) -> None:
        """Kill -9."""
        assert self._process is not None
        kill_group(self._process)

    def end(self) -> None:
        """End it, if it was started."""
        if self._process is not None:
            _end(self._process)


def parameters(**given: Any) -> list[str]:
    """As ``prefect deployment run`` takes them."""
    return [f"--param={key}={json.dumps(value)}" for key, value in given.items()]


def children(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes of a worker's runs."""
    return psutil.Process(worker.pid).children(recursive=True)


def kill_below(worker: subprocess.Popen[bytes]) -> int:
    """Kill -9 of the processes of a worker's runs; returns how many there were."""
    flows = children(worker)
    for process in flows:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return len(flows)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill -9 of a process that leads its group, and of the group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[PrefectServer]:
    """The session's server."""
    server = PrefectServer(tmp_path_factory.mktemp("prefect"), environment)
    try:
        server.start()
        yield server
    finally:
        server.end()


@pytest.fixture(scope="session")
def server(prefect_server: PrefectServer) -> dict[str, str]:
    """Environment of processes that talk to the session's server."""
    return prefect_server.variables


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its group, and what is left of the group with it."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=60):
                return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"Prefect's server did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def api(server: dict[str, str]) -> Api:
    """The session's server."""
    return Api(server["PREFECT_API_URL"])


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
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture(scope="session")
def deployments(prefect: Prefect, server: dict[str, str], api: Api) -> dict[str, str]:
    """The server with the work pools and all deployments of the shipped prefect.yaml."""
    created = prefect("work-pool", "create", "main", "--type", "process", "--overwrite")
    assert created.returncode == 0, created.stdout + created.stderr
    (main,) = api.ask("/work_pools/filter", {"work_pools": {"name": {"any_": ["main"]}}})
    for pool in ("cpu", "render", "gpu"):  # a command each would take seconds to start
        api.ask("/work_pools/", {"name": pool, **{key: main[key] for key in ("type", "base_job_template")}})
    deployed = prefect("--no-prompt", "deploy", "--all")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    return {**server, "PREFECT_WORKER_QUERY_SECONDS": "1"}


@pytest.fixture
def start_worker(deployments: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Start a worker of a pool, of ``limit`` runs at once, with its log in ``POOL.log``; all end after the test.

    Without a limit unless the test needs one: a worker with one dies (Prefect 3) when it is handed a run, such as a
    retried one, whose slot it still holds.
    """
    workers: list[subprocess.Popen[bytes]] = []

    def start(pool: str, limit: int | None = None, **environment: str) -> subprocess.Popen[bytes]:
        limited = [] if limit is None else ["--limit", str(limit)]
        with (tmp_path / f"{pool}.log").open("ab") as log:
            worker = subprocess.Popen(
                [str(BIN / "prefect"), "worker", "start", "--pool", pool, *limited],
                env={**deployments, **environment},
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        _end(worker)
