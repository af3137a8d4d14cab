"""Builds on a cluster, as far as this process goes; tests/end_to_end/test_cluster.py starts real ones."""

import errno
import json
import os
import platform
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.stages import run_here
from twinset.stages.making import cluster
from twinset.stages.making.cluster import _shipped
from twinset.stages.run_here import build_here

cloudpickle = pytest.importorskip("cloudpickle")
SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)})


class Workers:
    """A cluster whose workers are in this process; its first answers are errors."""

    cores, gpus = 3, 0

    def __init__(self, *answers: Any) -> None:
        self.answers, self.closed = [*answers], False

    def run(self, root: str, home: str, number: int, isolated: bool, gpu: bool) -> dict[str, Any]:
        if self.answers:
            raise self.answers.pop()
        return cluster._receipt(_shipped("make_there")(root, home, number, isolated))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Any:
    def join(*answers: Any) -> Workers:
        workers = Workers(*answers)
        monkeypatch.setattr(run_here, "open_cluster", lambda kind, asked: workers)
        return workers

    monkeypatch.setattr(run_here, "_delay", lambda attempt: 0.0)
    return join


def test_a_worker_that_died_is_no_end_and_the_bytes_are_the_same(
    recipe: Any, joined: Any, tmp_path: Path, files_below: Any
) -> None:
    workers = joined(*[ConnectionError("Ray lost the worker that made it")] * 3)
    counts = build_here(recipe, str(tmp_path / "there"), 0, "ray")
    assert workers.closed and not workers.answers
    assert build_here(recipe, str(tmp_path / "here")) == counts
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")


def test_nothing_to_do_joins_no_cluster(recipe: Any, joined: Any, tmp_path: Path) -> None:
    build_here(recipe, str(tmp_path / "out"))
    workers = joined()
    build_here(recipe, str(tmp_path / "out"), 0, "dask")
    assert not workers.closed


def test_a_cluster_that_refuses_is_asked_and_told_once(
    greys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(kind: str, workers: int) -> None:
        asked.append(kind)
        raise BuildFailed("no token")

    monkeypatch.setattr(run_here, "open_cluster", refuse)
    two = recipe_of({name: greys(name, SCENES, 1) for name in ("eq-x", "eq-y")})
    with pytest.raises(BuildFailed) as failed:
        build_here(two, str(tmp_path / "out"), 0, "ray")
    assert (asked, str(failed.value)) == (["ray"], "no token")


def test_a_shard_that_fails_there_is_told_once_and_the_others_are_made(
    recipe: Any, joined: Any, trouble: Any, tmp_path: Path
) -> None:
    trouble("b", f"errno {errno.ENOSPC} 9")
    joined(BuildFailed("the scheduler ended"))
    with pytest.raises(BuildFailed, match=r"2 of 4 shards failed[^!]*the scheduler ended") as failed:
        build_here(recipe, str(tmp_path / "out"), 1, "dask")
    assert len(str(failed.value).splitlines()) == 3
    trouble("b")
    joined()
    assert build_here(recipe, str(tmp_path / "out"), 1, "dask")["subsets"]["eq-x"]["kept"] == 4


@pytest.mark.parametrize(("kind", "address"), [("ray", "127.0.0.1:{}"), ("dask", "tcp://127.0.0.1:{}")])
def test_a_cluster_that_is_not_there_is_named_before_any_work(
    kind: Any, address: str, recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv(cluster.ADDRESSES[kind], address := address.format(closed.getsockname()[1]))
        with pytest.raises(BuildFailed, match=f"no {kind.title()} cluster answers at {address} .*{kind.upper()}_"):
            build_here(recipe, str(tmp_path / "out"), 0, kind)
    assert not (tmp_path / "out").exists()


def test_a_library_that_is_absent_is_named(recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cluster.LIBRARIES, "ray", "no_ray")
    with pytest.raises(WrongUse, match=r"runner ray: no_ray is not installed.*twinset\[cluster\]"):
        build_here(recipe, str(tmp_path / "out"), 0, "ray")


def lacking(folder: Path) -> str:
    (folder / "twinset").mkdir()
    (folder / "twinset/__init__.py").touch()
    return "twinset cannot be imported (No module named 'twinset."


def of_another_version(folder: Path) -> str:
    (folder / "twinset-99.dist-info").mkdir()
    (folder / "twinset-99.dist-info/METADATA").write_text("Name: twinset\nVersion: 99\n")
    return "twinset 99 is installed, and "


@pytest.mark.parametrize("other", [lacking, of_another_version])
def test_a_worker_without_this_twinset_says_so(other: Any, tmp_path: Path) -> None:
    words = other(tmp_path)
    call = "cloudpickle.load(sys.stdin.buffer)('/nowhere', 'x', 0, False)"
    code = f"import cloudpickle, json, sys; print(json.dumps({call}))"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=cloudpickle.dumps(_shipped("make_there")),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["host"] == platform.node() and answer["error"].startswith(words)
    with pytest.raises(BuildFailed, match=r"worker on far: twinset .*install the same version"):
        cluster._receipt({**answer, "host": "far"})


def test_a_worker_that_outlives_a_build_begins_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun = list[str]()
    monkeypatch.setattr(cluster, "begin_there", lambda: begun.append("again"))
    for build in ("", "one", "one", "two"):
        assert "error" in cluster.make_there(str(tmp_path), "pairs", 0, False, build)
    assert len(begun) == 2


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1", "http://127.0.0.1:8931"])
def test_what_is_no_address_of_a_scheduler_is_told_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address)
    with pytest.raises(WrongUse, match="write tcp://HOST:PORT"):
        cluster.check_cluster("dask")


def test_a_server_that_is_no_scheduler_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", f"tcp://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        with pytest.raises(BuildFailed, match=r"no Dask cluster answers at tcp://.* \(.*\); start it, correct"):
            cluster.open_cluster("dask", 1)
        server.shutdown()
