"""Builds on a Dask cluster, as far as this process goes; tests/end_to_end/test_cluster.py starts real ones."""

from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed
from twinset.stages.build import build_here
from twinset.stages.child_processes import ChildDied

pytestmark = pytest.mark.usefixtures("no_cards")


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
    greys: Any, tmp_path: Path, files_below: Any, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of({"eq-x": greys("eq-x", [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)], 1)})
    workers = Workers(ChildDied("its process died (signal 9)"))
    monkeypatch.setattr("twinset.stages.build.DaskCluster", lambda: workers)
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
