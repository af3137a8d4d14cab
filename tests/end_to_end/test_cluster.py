"""Builds on a Dask cluster of processes that the test starts: joined by address, without Prefect."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.slow
BIN = Path(sys.executable).parent
LOCAL = "127.0.0.1"
FACES = ("build", "demo", "--only", "eq-youcook2", "--set", "subsets.eq-youcook2.count=8")  # dlib wants children
NO_PREFECT = """
import runpy, sys

sys.modules.update(prefect=None)  # an import of it fails
runpy.run_module("twinset.cli.main", run_name="__main__")
"""
Start = Callable[..., "psutil.Popen"]


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Start a process of a cluster, whose log is NAME.log; it and its children are killed after."""
    started: list[psutil.Popen] = []

    def begin(name: str, *command: str, **more: str) -> psutil.Popen:
        with (tmp_path / f"{name}.log").open("ab") as log:
            process = psutil.Popen(
                [str(BIN / command[0]), *command[1:]],
                env={**environment, **more},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=tmp_path,
            )
        started.append(process)
        return process

    yield begin
    below = [child for process in started if process.is_running() for child in process.children(recursive=True)]
    for process in [*started, *below]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(started)


@pytest.fixture
def dask(start: Start, tmp_path: Path, until: Any) -> tuple[str, psutil.Popen]:
    """Address and process of a scheduler without workers."""
    file = tmp_path / "scheduler.json"
    place = ("--host", LOCAL, "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    scheduler = start("scheduler", "dask", "scheduler", *place)
    until(lambda: file.exists() and file.read_text().endswith("}"))
    return json.loads(file.read_text())["address"], scheduler


@pytest.fixture
def dask_worker(start: Start, dask: tuple[str, psutil.Popen], tmp_path: Path, until: Any) -> Start:
    def begin(name: str, *options: str, **more: str) -> psutil.Popen:
        place = (dask[0], "--host", LOCAL, "--nthreads", "1", "--no-dashboard", "--name", name)
        worker = start(name, "dask", "worker", *place, *options, **more)
        until(lambda: "Registered to" in (tmp_path / f"{name}.log").read_text())
        return worker

    return begin


def test_a_dask_cluster_is_joined_and_a_worker_killed(
    dask: tuple[str, psutil.Popen],
    dask_worker: Start,
    environment: dict[str, str],
    small_recipe: Path,
    reference: Path,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    killed, _ = dask_worker("killed", "--no-nanny"), dask_worker("other")
    out = tmp_path / "out"
    with (tmp_path / "log").open("wb") as log:
        build = subprocess.Popen(
            [sys.executable, "-c", NO_PREFECT, "build", small_recipe, "--out", out, "--runner", "dask"],
            env={**environment, "DASK_SCHEDULER_ADDRESS": dask[0]},
            stderr=log,
            stdout=log,
        )
    until(lambda: any(made_by(killed.pid, log) for log in out.glob("*/_meta/log/0*.json")), 0.01)
    killed.kill()
    killed.wait()
    assert build.wait() == 0, (tmp_path / "log").read_text()
    assert contents(out) == contents(reference)
    assert "Traceback" not in (tmp_path / "log").read_text()


def made_by(pid: int, log: Path) -> bool:
    return bool(json.loads(log.read_text())["pid"] == pid)


def test_a_dask_scheduler_dies_midway(
    dask: tuple[str, psutil.Popen],
    dask_worker: Start,
    start_twinset: Any,
    twinset: Any,
    small_recipe: Path,
    reference: Path,
    contents: Any,
    until: Any,
    tmp_path: Path,
) -> None:
    dask_worker("worker")
    out = tmp_path / "out"
    command = ("build", small_recipe, "--out", out, "--runner", "dask")
    build = start_twinset(*command, DASK_SCHEDULER_ADDRESS=dask[0])
    until(lambda: any(out.glob("*/_meta/receipts/*")), 0.01)
    dask[1].kill()
    assert build.wait() == 1
    lines = (tmp_path / "log").read_text().splitlines()
    assert any("the Dask scheduler ended" in line for line in lines) and len(lines) < 10, lines
    assert twinset(*command[:4]).returncode == 0
    assert contents(out) == contents(reference)


@pytest.mark.parametrize("nanny", ["--nanny", "--no-nanny"])
def test_dasks_workers_make_shards_in_children_that_must_not_share_a_process(
    nanny: str,
    dask: tuple[str, psutil.Popen],
    dask_worker: Start,
    twinset: Any,
    contents: Any,
    faces_reference: dict[str, bytes],
    tmp_path: Path,
) -> None:
    worker = dask_worker("worker", nanny)
    result = twinset(*FACES, "--out", tmp_path / "out", "--runner", "dask", DASK_SCHEDULER_ADDRESS=dask[0])
    assert result.returncode == 0, result.stderr
    assert contents(tmp_path / "out") == faces_reference
    made_with = [child for child in worker.children(recursive=True) if "--multiprocessing-fork" in child.cmdline()]
    assert len(made_with) == (nanny == "--nanny")  # children that made shards have ended


@pytest.fixture(scope="module")
def faces_reference(tmp_path_factory: pytest.TempPathFactory, twinset: Any, contents: Any) -> dict[str, bytes]:
    """The contents of what `FACES` makes here."""
    out = tmp_path_factory.mktemp("faces") / "out"
    result = twinset(*FACES, "--out", out)
    assert result.returncode == 0, result.stderr
    found: dict[str, bytes] = contents(out)
    return found
