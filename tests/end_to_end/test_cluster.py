"""Builds on a Dask cluster of processes that the test starts: joined by address, without Prefect."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.end_to_end.conftest import BIN, Build, contents, kill_all, logged
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
FACES = ("--only", "eq-youcook2", "--set", "subsets.eq-youcook2.count=8")  # dlib wants children
NO_PREFECT = """
import runpy, sys

sys.modules.update(prefect=None)  # an import of it fails
runpy.run_module("twinset.cli.main", run_name="__main__")
"""


Started = subprocess.Popen[bytes]


class Dask:
    """A scheduler, and workers that join it; logs are NAME.log. variables: environment of builds on it."""

    def __init__(self, folder: Path, environment: dict[str, str], processes: list[Started]) -> None:
        self._folder, self._environment, self._processes = folder, environment, processes
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "scheduler", "--port", "0", "--scheduler-file", str(file))
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self._address = json.loads(file.read_text())["address"]
        self.variables = {"DASK_SCHEDULER_ADDRESS": self._address}

    def worker(self, name: str, *options: str) -> Started:
        """Start a worker; returns once it has joined."""
        worker = self._start(name, "worker", self._address, "--nthreads", "1", "--name", name, *options)
        wait_until(lambda: "Registered to" in (self._folder / f"{name}.log").read_text())
        return worker

    def _start(self, name: str, *arguments: str) -> Started:
        command = [str(BIN / "dask"), *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        self._processes.append(logged(command, self._folder / f"{name}.log", self._environment, cwd=self._folder))
        return self._processes[-1]


@pytest.fixture
def dask(environment: dict[str, str], tmp_path: Path) -> Iterator[Dask]:
    """A scheduler without workers; all processes and their children are killed after."""
    processes: list[Started] = []
    try:
        yield Dask(tmp_path, environment, processes)
    finally:
        living = [psutil.Process(process.pid) for process in processes if process.poll() is None]
        kill_all([*(child for process in living for child in process.children(recursive=True)), *processes])
        for process in processes:
            process.wait()


def test_a_dask_cluster_is_joined_and_a_worker_killed(
    dask: Dask, environment: dict[str, str], small_recipe: Path, reference: Path, tmp_path: Path
) -> None:
    killed, _ = dask.worker("killed", "--no-nanny"), dask.worker("other")
    out, log = tmp_path / "out", tmp_path / "log"
    command = [sys.executable, "-c", NO_PREFECT, "build", str(small_recipe), "--out", str(out), "--runner", "dask"]
    build = logged(command, log, {**environment, **dask.variables})
    wait_until(lambda: any(made_by(killed.pid, of_shard) for of_shard in out.glob("*/_meta/log/0*.json")), pause=0.01)
    killed.kill()
    killed.wait()
    assert build.wait() == 0, log.read_text()
    assert contents(out) == contents(reference)
    assert "Traceback" not in log.read_text()


def made_by(pid: int, log: Path) -> bool:
    return bool(json.loads(log.read_text())["pid"] == pid)


def test_a_dask_scheduler_dies_midway(
    dask: Dask, start_twinset: Any, twinset: Any, small_recipe: Path, reference: Path, tmp_path: Path
) -> None:
    dask.worker("worker")
    out = tmp_path / "out"
    command = ("build", small_recipe, "--out", out, "--runner", "dask")
    build = start_twinset(*command, **dask.variables)
    wait_until(lambda: any(out.glob("*/_meta/receipts/*")), pause=0.01)
    dask.scheduler.kill()
    assert build.wait() == 1
    log = (tmp_path / "log").read_text()
    assert "the Dask scheduler ended" in log and "Traceback" not in log, log  # progress is more lines on a busy machine
    assert twinset(*command[:4]).returncode == 0
    assert contents(out) == contents(reference)


@pytest.mark.parametrize("nanny", ["--nanny", "--no-nanny"])
def test_dasks_workers_make_shards_in_children_that_must_not_share_a_process(
    nanny: str, dask: Dask, build_once: Build, twinset: Any, tmp_path: Path
) -> None:
    whole, worker = build_once("faces", "demo", *FACES), dask.worker("worker", nanny)
    result = twinset("build", "demo", *FACES, "--out", tmp_path / "out", "--runner", "dask", **dask.variables)
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == contents(whole)
    children = psutil.Process(worker.pid).children(recursive=True)
    made_with = [child for child in children if "--multiprocessing-fork" in child.cmdline()]
    assert len(made_with) == (nanny == "--nanny")  # children that made shards have ended
