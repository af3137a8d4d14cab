"""Builds on a Dask cluster, as far as this process goes; tests/end_to_end/test_cluster.py starts real ones."""

import socket
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.stages import run_here
from twinset.stages.making import cluster
from twinset.stages.making.cluster import ADDRESS, DaskCluster, begin_there
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)})


class Workers:
    """A cluster whose workers are in this process; its first answers are errors."""

    cores, lost = 3, False

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.closed = [*errors], False

    def executor(self, worker: Any) -> "Workers":
        self._pool = ThreadPoolExecutor(3)
        return self

    def submit(self, make: Any, number: int) -> Future[Any]:
        if not self.errors:
            return self._pool.submit(make, number)
        failed = Future[Any]()
        failed.set_exception(self.errors.pop())
        return failed

    def close(self) -> None:
        self.closed = True


def test_a_worker_that_died_is_no_end_and_the_bytes_are_the_same(
    recipe: Any, tmp_path: Path, files_below: Any, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers(ChildProcessError("its process died (signal 9)"))
    monkeypatch.setattr(run_here, "DaskCluster", lambda: workers)
    counts = build_here(recipe, str(tmp_path / "there"), 0, "dask")
    assert workers.closed and not workers.errors
    assert build_here(recipe, str(tmp_path / "here")) == counts
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")

    trouble("b", "raise")
    workers.errors = [CancelledError()]
    with pytest.raises(BuildFailed) as failed:
        build_here(recipe, str(tmp_path / "out"), 1, "dask")
    first, *others = str(failed.value).splitlines()
    assert first.startswith("2 of 4 shards failed") and "eq-x shard 00000: the Dask scheduler ended" in others[0]
    assert "eq-x shard 00001: worker on " in others[1] and "a mistake in a source" in others[1]


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://127.0.0.1"])
def test_what_is_no_address_of_a_scheduler_is_told_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setenv(ADDRESS, address)
    with pytest.raises(WrongUse, match="such as tcp://HOST:8786"):
        DaskCluster()


def test_a_cluster_that_is_not_there_is_named_before_any_work(
    recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        monkeypatch.setenv(ADDRESS, address := f"tcp://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(BuildFailed, match=rf"no Dask scheduler answers at {address} \(.*\); start it, or correct"):
            build_here(recipe, str(tmp_path / "out"), 0, "dask")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ModuleNotFoundError("No module named 'twinset'"), "a Dask worker cannot import twinset .* install the same"),
        ({"tcp://a:1": begin_there(), "tcp://b:2": "99"}, "Dask workers have twinset 99, and the build has .* install"),
    ],
)
def test_workers_without_this_twinset_are_refused(answer: Any, words: str) -> None:
    class Client:
        def run(self, function: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    joined = object.__new__(DaskCluster)
    joined._client = Client()
    with pytest.raises(BuildFailed, match=words):
        joined._begin()
