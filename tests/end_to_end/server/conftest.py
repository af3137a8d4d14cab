"""A real Prefect server for the session, with the shipped deployments, and workers for its pools."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.conftest import BIN, CHECKOUT, kill_all, logged
from tests.end_to_end.server.prefect_api import ENDED, Api
from tests.waiting import answers, wait_until


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
        self._process = logged(command, self._log, self.variables, start_new_session=True)
        health = f"{self.variables['PREFECT_API_URL']}/health"
        wait_until(lambda: answers(health), self._process, pause=0.3)

    def started(self) -> dict[str, str]:
        if self._process is None:
            self.start()
        return self.variables

    def kill(self) -> None:
        assert self._process is not None
        kill_group(self._process)
        self._process = None

    def end(self) -> None:
        if self._process is not None:
            _end(self._process)


def run_prefect(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "prefect"), *arguments]
    return subprocess.run(command, env=variables, cwd=CHECKOUT, capture_output=True, text=True, input="")


def deploy_all(variables: dict[str, str]) -> None:
    """Make the work pools and all deployments of the shipped prefect.yaml."""
    created = run_prefect(variables, "work-pool", "create", "main", "--type", "process", "--overwrite")
    assert created.returncode == 0, created.stdout + created.stderr
    api = Api(variables["PREFECT_API_URL"])
    (main,) = api.ask("/work_pools/filter", {"work_pools": {"name": {"any_": ["main"]}}})
    for pool in ("cpu", "render", "gpu"):  # a command each would take seconds to start
        api.ask("/work_pools/", {"name": pool, **{key: main[key] for key in ("type", "base_job_template")}})
    deployed = run_prefect(variables, "--no-prompt", "deploy", "--all")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr


def children(worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(worker.pid).children(recursive=True)


def kill_below(worker: subprocess.Popen[bytes]) -> int:
    runs = children(worker)
    kill_all(runs)
    return len(runs)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()
    with contextlib.suppress(ProcessLookupError):  # what is left of its group
        os.killpg(process.pid, signal.SIGKILL)


@dataclass
class Cluster:
    """A server with all deployments, and the workers that a test starts.

    folder: of the logs of workers, by pool.
    """

    server: PrefectServer
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def api(self) -> Api:
        return Api(self.server.variables["PREFECT_API_URL"])

    def prefect(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        done = run_prefect(self.server.variables, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def start(self, pool: str, limit: int | None = None, **variables: str) -> subprocess.Popen[bytes]:
        """Start a worker of a pool, of ``limit`` runs at once.

        Without a limit unless the test needs one: a worker with one dies (Prefect 3) when it is handed a run, such as a
        retried one, whose slot it still holds.
        """
        limited = [] if limit is None else ["--limit", str(limit)]
        command = [str(BIN / "prefect"), "worker", "start", "--pool", pool, *limited]
        variables = {**self.server.variables, "PREFECT_WORKER_QUERY_SECONDS": "1", **variables}
        log = self.folder / f"{pool}.log"
        self.workers.append(logged(command, log, variables, cwd=CHECKOUT, start_new_session=True))
        return self.workers[-1]

    def log(self, pool: str = "main") -> str:
        return (self.folder / f"{pool}.log").read_text()

    def run(self, deployment: str, **parameters: Any) -> subprocess.CompletedProcess[str]:
        written = [f"--param={key}={json.dumps(value)}" for key, value in parameters.items()]
        return run_prefect(self.server.variables, "deployment", "run", deployment, "--watch", *written)

    def ended(self, run: str) -> str:
        """Wait for the end of a run; the type of its state."""
        wait_until(lambda: self.api.state(run) in ENDED, pause=0.5)
        return self.api.state(run)

    def completes(self, run: str, pool: str = "main") -> None:
        assert self.ended(run) == "COMPLETED", self.log(pool)[-3000:]

    def retry(self, run: str, pool: str = "main") -> None:
        """``prefect flow-run retry``, which schedules the run at once, to its end, which must be a good one."""
        self.prefect("flow-run", "retry", run)
        self.completes(run, pool)


@pytest.fixture(scope="session")
def deployed_server(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[PrefectServer]:
    """The session's server, with the work pools and all deployments of the shipped prefect.yaml."""
    server = PrefectServer(tmp_path_factory.mktemp("prefect"), environment)
    try:
        deploy_all(server.started())
        yield server
    finally:
        server.end()


@pytest.fixture
def server(deployed_server: PrefectServer) -> dict[str, str]:
    return deployed_server.variables


@pytest.fixture
def cluster(deployed_server: PrefectServer, tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(deployed_server, tmp_path)
    yield started
    for worker in started.workers:
        _end(worker)
