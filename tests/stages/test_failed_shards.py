"""Shards that fail: what passes is tried again, the rest is named with its shard, and the other shards are made.

Shards made in child processes: what a child answers, and how it dies. A Dask cluster, as far as this process goes;
tests/end_to_end/test_cluster.py starts real ones.
"""

import errno
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.stages.conftest import recipe_of
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages import make
from twinset.stages.build import build_here
from twinset.stages.child_processes import ChildDied, Children, close_children, receipt_in, run_in_child
from twinset.stages.job import state_of
from twinset.stages.make import make_and_retry

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def out(tmp_path: Path, planned_build: Any) -> Iterator[Path]:
    """A planned subset of four shards, whose children end with the test."""
    planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 1)
    yield tmp_path / "out"
    close_children()


def test_a_child_answers_with_receipts_or_errors_and_stays_for_the_next_shard(out: Path) -> None:
    assert [run_in_child(str(out), "eq-x", shard).shard for shard in (0, 1)] == [0, 1]
    logs = [Store(str(out)).read(f"eq-x/_meta/log/{number:05d}.json") for number in (0, 1)]
    pids = {yaml.safe_load(log)["pid"] for log in logs}
    assert len(pids) == 1 and os.getpid() not in pids
    with pytest.raises(BuildFailed, match=r"IndexError: .*\(.*make\.py:\d+\)"):
        run_in_child(str(out), "eq-x", 99)
    (out / "eq-x/_meta/rows/00002.parquet").mkdir()
    with pytest.raises(OSError, match="a folder lies where a file belongs") as caught:
        run_in_child(str(out), "eq-x", 2)
    assert caught.value.errno == errno.EISDIR and str(caught.value).count("[Errno") == 1
    close_children()
    assert not psutil.pid_exists(pids.pop())


def test_a_child_that_dies_is_replaced_also_as_it_starts(out: Path, trouble: Any) -> None:
    trouble("b", "kill")
    with pytest.raises(ChildProcessError, match=r"its process died \(signal 9\)"):
        run_in_child(str(out), "eq-x", 1)
    trouble("b")
    assert run_in_child(str(out), "eq-x", 1).kept == 1
    close_children()
    children = Children(1)
    future = children.submit(make_and_retry, str(out), "eq-x", 0)
    wait_until(multiprocessing.active_children)[0].kill()
    wait_until(lambda: children.look_after() or future.done())
    with pytest.raises(ChildProcessError, match="died"):
        receipt_in(future)
    assert receipt_in(children.submit(make_and_retry, str(out), "eq-x", 2)).kept == 1
    unmade = children.submit(make_and_retry, str(out), "eq-x", 3)
    children.shutdown()
    assert unmade.done()


def test_a_killed_shard_is_made_again_once_the_others_have_ended(
    greys: Any, tmp_path: Path, trouble: Any, media: Path, no_cards: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As the kernel kills where memory runs out."""
    trouble("a", "sleep")
    trouble("b", "kill 1")
    with ThreadPoolExecutor(1) as pool:
        recipe = recipe_of({"eq-x": greys("eq-x", SCENES, 1)})
        built = pool.submit(build_here, recipe, str(tmp_path / "out"), 2, "processes")
        wait_until((media / "trouble/a.sleep").is_file)
        wait_until(lambda: "made again at the end" in caplog.text)
        assert not built.done()
        trouble("a")
        assert built.result()["subsets"]["eq-x"]["kept"] == 4
    logs = [yaml.safe_load((tmp_path / f"out/eq-x/_meta/log/{number:05d}.json").read_text()) for number in range(4)]
    assert logs[1]["began"] >= max(log["began"] + log["seconds"] for log in (logs[0], *logs[2:]))


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)})


@pytest.mark.parametrize(("number", "times", "tries"), [(errno.EIO, 1, 2), (errno.EIO, 99, 4), (errno.ENOSPC, 99, 1)])
def test_trouble_that_passes_is_tried_again_and_what_stays_ends_the_build_with_the_shard(
    recipe: Any, tmp_path: Path, trouble: Any, media: Path, monkeypatch: Any, number: int, times: int, tries: int
) -> None:
    monkeypatch.setattr(make.time, "sleep", lambda seconds: None)
    trouble("b", f"errno {number} {times}")
    if times > tries:
        with pytest.raises(BuildFailed, match=r"1 of 4 shards failed; run the same.*\neq-x shard 00001: "):
            build_here(recipe, str(tmp_path / "out"), 1)
        trouble("b")
    assert build_here(recipe, str(tmp_path / "out"), 1)["subsets"]["eq-x"]["kept"] == 4
    assert (media / "trouble/b.errno").read_text() == "x" * tries


def test_a_source_that_ends_its_process_fails_its_shard_alone(
    recipe: Any, tmp_path: Path, trouble: Any, files_below: Any
) -> None:
    out = tmp_path / "out"
    trouble("b", "leave 0")
    with pytest.raises(BuildFailed, match=r"1 of 4 shards failed.*\neq-x shard 00001: SystemExit: 0"):
        build_here(recipe, str(out), 1)
    assert state_of(Store(str(out)), "eq-x").todo == [1]
    trouble("b")
    build_here(recipe, str(out))
    build_here(recipe, str(tmp_path / "whole"))
    assert files_below(out) == files_below(tmp_path / "whole")


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
    recipe = recipe_of({"eq-x": greys("eq-x", SCENES, 1)})
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
