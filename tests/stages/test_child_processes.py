"""Shards made in child processes: what a child answers, how it dies, and that it never outlives its parent."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from manifests.errors import BuildFailed, WrongUse
from manifests.recipe import Recipe
from shards.storage.spool import SPOOL
from shards.storage.store import Store
from stages.child_processes import ShardCrashed, close_children, make_one_isolated
from stages.prepare import asked_recipe, make_one, prepare, state_of

SMALL, LARGE = 3, 200  # segments a video: 3 and 19,900 pairs, the latter seconds of work


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """A planned subset of real YouCook2 annotations without media: shards 0-3 are small, shard 4 is large."""
    media = tmp_path / "media"
    media.mkdir()
    database = {
        f"video{video}": {
            "subset": "training",
            "recipe_type": "101",
            "annotations": [
                {"id": step, "segment": [step, step + 1], "sentence": f"do step {step}"}
                for step in range(LARGE if video == 4 else SMALL)
            ],
        }
        for video in range(5)
    }
    (tmp_path / "annotations.json").write_text(json.dumps({"database": database}))
    source = {"kind": "youcook2", "annotations": str(tmp_path / "annotations.json"), "media": str(media)}
    recipe = Recipe.model_validate({"name": "small", "subsets": {"eq-x": {"source": source, "shard_size": 1}}})
    prepare(Store(str(tmp_path / "out")), recipe, "eq-x")
    yield tmp_path / "out"
    close_children()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether a condition came to hold in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.002)
    return False


def children(parent: int) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(parent).children():
        try:
            if "stages.child_processes" in child.cmdline():
                found.append(child)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            pass
    return found


def at_work(out: Path) -> bool:
    return (out / SPOOL).is_dir() and any((out / SPOOL).iterdir())


def scratch_of(child: psutil.Process) -> Path:
    return Path(child.environ()["TMPDIR"])


def todo(out: Path) -> list[int]:
    store = Store(str(out))
    return state_of(store, asked_recipe(store, "eq-x"), "eq-x").todo


def test_a_child_answers_with_receipts_and_stays_for_the_next_shard(out: Path) -> None:
    receipts = [make_one_isolated(str(out), "eq-x", shard) for shard in (0, 1)]
    assert [receipt["rejected"] for receipt in receipts] == [{"missing-media": 3}] * 2
    assert len(children(os.getpid())) == 1
    assert receipts[1] == make_one(str(out), "eq-x", 1)
    scratch = scratch_of(*children(os.getpid()))
    assert scratch.is_dir()
    close_children()
    assert children(os.getpid()) == [] and not scratch.exists()


def test_a_child_that_is_killed_takes_only_its_shard_down(out: Path) -> None:
    killed: list[int] = []
    scratches: list[Path] = []

    def kill() -> None:
        if within(60, lambda: at_work(out)):
            (child,) = children(os.getpid())
            scratches.append(scratch_of(child))
            (scratches[0] / "unpacked").mkdir()
            child.kill()
            killed.append(child.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(ShardCrashed, match=r"its process died \(signal 9\); run the same command again"):
        make_one_isolated(str(out), "eq-x", 4)
    killer.join(60)
    assert make_one_isolated(str(out), "eq-x", 0)["planned"] == 3
    (child,) = children(os.getpid())
    assert killed and child.pid not in killed
    assert scratches and not scratches[0].exists()
    assert todo(out) == [1, 2, 3, 4]
    Store(str(out)).sweep()
    assert not at_work(out)


def test_a_child_that_dies_while_idle_fails_no_shard(out: Path) -> None:
    make_one_isolated(str(out), "eq-x", 0)
    (child,) = children(os.getpid())
    child.send_signal(signal.SIGKILL)
    child.wait(20)
    assert make_one_isolated(str(out), "eq-x", 1)["planned"] == 3


def test_children_end_when_their_parent_is_killed(out: Path) -> None:
    code = f"from stages.child_processes import make_one_isolated; make_one_isolated({str(out)!r}, 'eq-x', 4)"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    try:
        assert within(60, lambda: at_work(out)), "the child did not start to work"
        (child,) = children(parent.pid)
        scratch = scratch_of(child)
        assert scratch.is_dir()
    finally:
        parent.kill()
        parent.wait()
    assert within(20, lambda: not child.is_running())
    assert not scratch.exists()
    make_one(str(out), "eq-x", 4)
    assert todo(out) == [0, 1, 2, 3]


def test_what_is_killed_with_its_children_leaves_no_temporary_files(out: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = (
        "from flows.orphans import end_with_this_process; end_with_this_process();"
        f"from stages.child_processes import make_one_isolated; make_one_isolated({str(out)!r}, 'eq-x', 4)"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2], env=environment)
    try:
        assert within(60, lambda: at_work(out)), "the child did not start to work"
        (child,) = children(parent.pid)
        assert scratch_of(child).is_relative_to(temporary)
        child.suspend()  # it cannot tidy up after itself
    finally:
        parent.kill()
        parent.wait()
    assert within(20, lambda: not any(temporary.iterdir()))


def test_errors_cross_with_their_kind_and_their_remedy(out: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="holds no plan of eq-y"):
        make_one_isolated(str(out), "eq-y", 0)
    with pytest.raises(BuildFailed, match="IndexError"):
        make_one_isolated(str(out), "eq-x", 99)
    (out / "eq-x/_meta/rows").write_text("a file where a folder should be")
    with pytest.raises(OSError, match="a part of this path is a file; name another --out") as caught:
        make_one_isolated(str(out), "eq-x", 0)
    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)
    assert str(caught.value).count("[Errno") == 1 and str(out) in str(caught.value)
    assert caught.value.__notes__ == ["while making eq-x shard 00000"]
    (out / "eq-x/_meta/rows").unlink()
    assert make_one_isolated(str(out), "eq-x", 0)["planned"] == 3


def test_two_threads_have_a_child_each(out: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        receipts = list(pool.map(lambda shard: make_one_isolated(str(out), "eq-x", shard), range(4)))
    assert [receipt["shard"] for receipt in receipts] == [0, 1, 2, 3]
    assert len(children(os.getpid())) == 2
    assert todo(out) == [4]
