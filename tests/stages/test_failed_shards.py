"""Shards that fail and processes that die; tests/end_to_end/test_cluster.py starts real Dask clusters."""

import errno
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

import twinset
from tests.stages.conftest import recipe_of
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages import make
from twinset.stages.child_processes import ChildDied, Children, close_children, receipt_in, run_in_child
from twinset.stages.job import state_of
from twinset.stages.make import make_and_retry

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def children_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """webdataset imports PyTorch where it finds it, which takes a child most of its time."""
    import_module("webdataset")  # with it, in this process
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent/torch.py").write_text("raise ModuleNotFoundError")
    monkeypatch.syspath_prepend(tmp_path / "absent")


@pytest.fixture
def out(tmp_path: Path, planned_build: Any, children_without_torch: None) -> Iterator[Path]:
    """A planned subset of four shards, whose children end with the test."""
    planned_build(SCENES, 1)
    yield tmp_path / "out"
    close_children()


def logs_of(out: Path, *shards: int) -> list[dict[str, Any]]:
    return [yaml.safe_load((out / f"eq-x/_meta/log/{shard:05d}.json").read_text()) for shard in shards]


def test_a_child_answers_with_receipts_or_errors_stays_and_is_replaced_when_it_dies(out: Path, trouble: Any) -> None:
    assert [run_in_child(str(out), "eq-x", shard).shard for shard in (0, 1)] == [0, 1]
    first, second = (log["pid"] for log in logs_of(out, 0, 1))
    assert first == second != os.getpid()
    with pytest.raises(BuildFailed, match=r"IndexError: .*\(.*make\.py:\d+\)"):
        run_in_child(str(out), "eq-x", 99)
    (out / "eq-x/_meta/rows/00002.parquet").mkdir()
    with pytest.raises(OSError, match="a folder lies where a file belongs") as caught:
        run_in_child(str(out), "eq-x", 2)
    assert caught.value.errno == errno.EISDIR and str(caught.value).count("[Errno") == 1
    trouble("d", "kill")
    with pytest.raises(ChildProcessError, match=r"its process died \(signal 9\)"):
        run_in_child(str(out), "eq-x", 3)
    trouble("d")
    assert run_in_child(str(out), "eq-x", 3).kept == 1
    close_children()
    assert not psutil.pid_exists(logs_of(out, 3)[0]["pid"])


@pytest.mark.slow
def test_a_child_that_dies_as_it_starts_is_replaced(out: Path) -> None:
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


@pytest.fixture
def recipe(greys: Any) -> Recipe:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)})


def test_a_shard_whose_process_is_killed_is_made_again(
    recipe: Recipe, tmp_path: Path, trouble: Any, caplog: pytest.LogCaptureFixture, children_without_torch: None
) -> None:
    """As the kernel kills where memory runs out."""
    trouble("b", "kill 1")
    assert twinset.build(recipe, tmp_path / "out", workers=1, runner="processes")["subsets"]["eq-x"]["kept"] == 4
    assert "eq-x shard 00001: its process died (signal 9); made again at the end" in caplog.text


@pytest.mark.parametrize(
    ("what", "tries", "error"),
    [
        (f"errno {errno.EIO} 1", 2, ""),
        (f"errno {errno.EIO} 99", 4, "Input/output error"),
        (f"errno {errno.ENOSPC} 99", 1, "No space left"),
        ("leave 0", 1, "SystemExit: 0"),
    ],
)
def test_trouble_that_passes_is_tried_again_and_what_stays_fails_its_shard_alone(
    recipe: Recipe, tmp_path: Path, trouble: Any, monkeypatch: Any, files_below: Any, what: str, tries: int, error: str
) -> None:
    monkeypatch.setattr(make.time, "sleep", lambda seconds: None)
    out = tmp_path / "out"
    trouble("b", what)
    if error:
        with pytest.raises(BuildFailed, match=rf"1 of 4 shards failed; run the same.*\neq-x shard 00001: .*{error}"):
            twinset.build(recipe, str(out), workers=1)
        assert state_of(Store(str(out)), "eq-x").todo == [1]
        trouble("b")
    twinset.build(recipe, str(out), workers=1)
    assert (tmp_path / "media/trouble" / f"b.{what.split()[0]}").read_text() == "x" * tries
    trouble("b")
    twinset.build(recipe, tmp_path / "whole")
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


def test_a_shard_whose_worker_died_is_made_again_once_the_others_have_ended_and_the_bytes_are_the_same(
    recipe: Recipe, tmp_path: Path, files_below: Any, trouble: Any, media: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    workers = Workers(ChildDied("its process died (signal 9)"))
    monkeypatch.setattr("twinset.stages.build.DaskCluster", lambda: workers)
    trouble("b", "sleep")
    with ThreadPoolExecutor(1) as pool:
        build = pool.submit(twinset.build, recipe, tmp_path / "there", runner="dask")
        wait_until((media / "trouble/b.sleep").is_file)
        wait_until(lambda: "made again at the end" in caplog.text)
        trouble("b")
        counts = build.result()
    assert workers.closed and not workers.errors
    again, *rest = logs_of(tmp_path / "there", *range(4))
    assert again["began"] >= max(log["began"] + log["seconds"] for log in rest)
    assert twinset.build(recipe, tmp_path / "here") == counts
    assert files_below(tmp_path / "there") == files_below(tmp_path / "here")

    trouble("b", "raise")
    workers.errors = [CancelledError()]
    with pytest.raises(BuildFailed) as failed:
        twinset.build(recipe, tmp_path / "out", workers=1, runner="dask")
    first, lost, mistake = str(failed.value).splitlines()
    assert first.startswith("2 of 4 shards failed") and "eq-x shard 00000: the Dask scheduler ended" in lost
    assert "eq-x shard 00001: worker on " in mistake and "a mistake in a source" in mistake
