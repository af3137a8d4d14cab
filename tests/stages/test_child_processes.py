"""Shards made in child processes: what a child answers, how it dies, and that it never outlives its parent."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from pebble.common.process import process_exit

from tests.stages.conftest import recipe_of
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.storage.store import Store
from twinset.stages.child_processes import Children, _begin, close_children, run_in_child
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def out(tmp_path: Path, planned_build: Any) -> Iterator[Path]:
    """A planned subset of four shards, whose children end with the test."""
    planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 1)
    yield tmp_path / "out"
    close_children()


def test_a_child_answers_with_receipts_and_stays_for_the_next_shard(out: Path) -> None:
    receipts = [run_in_child(str(out), "eq-x", shard) for shard in (0, 1)]
    assert [(receipt["shard"], receipt["kept"]) for receipt in receipts] == [(0, 1), (1, 1)]
    logs = [Store(str(out)).read(f"eq-x/_meta/log/{number:05d}.json") for number in (0, 1)]
    pids = {yaml.safe_load(log)["pid"] for log in logs}
    assert len(pids) == 1 and os.getpid() not in pids
    close_children()
    assert not psutil.pid_exists(pids.pop())


def test_errors_cross_with_their_kind_and_their_remedy(out: Path) -> None:
    with pytest.raises(WrongUse, match="holds no plan of eq-y"):
        run_in_child(str(out), "eq-y", 0)
    with pytest.raises(BuildFailed, match=r"IndexError: .*\(.*make\.py:\d+\)"):
        run_in_child(str(out), "eq-x", 99)
    (out / "eq-x/_meta/rows").write_text("a file where a folder should be")
    with pytest.raises(OSError, match="a part of this path is a file; name another --out") as caught:
        run_in_child(str(out), "eq-x", 0)
    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)
    assert str(caught.value).count("[Errno") == 1 and str(out) in str(caught.value)
    (out / "eq-x/_meta/rows").unlink()
    assert run_in_child(str(out), "eq-x", 0)["kept"] == 1


def test_a_child_that_dies_takes_its_shard_alone_and_is_replaced(out: Path, trouble: Any) -> None:
    trouble("b", "kill")
    with pytest.raises(BuildFailed, match=r"its process died \(signal 9\); run the same command again"):
        run_in_child(str(out), "eq-x", 1)
    assert run_in_child(str(out), "eq-x", 0)["kept"] == 1
    trouble("b")
    assert run_in_child(str(out), "eq-x", 1)["kept"] == 1


def test_a_shard_whose_process_is_killed_is_made_again_alone(
    out: Path, trouble: Any, media: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As the kernel kills where memory runs out: the others end before, and none begins until it is made."""
    trouble("a", "sleep 3600")
    trouble("b", "kill 1")
    with ThreadPoolExecutor(2) as pool:
        beside = pool.submit(run_in_child, str(out), "eq-x", 0)
        wait_until((media / "trouble/a.asleep").is_file)
        made = pool.submit(run_in_child, str(out), "eq-x", 1)
        wait_until(lambda: "made alone" in caplog.text)
        assert not beside.done() and not made.done()
        trouble("a")
        assert made.result()["kept"] == 1 and beside.done()
    assert "eq-x shard 00001: its process died (signal 9); made alone" in caplog.text
    logs = [yaml.safe_load(Store(str(out)).read(f"eq-x/_meta/log/{number:05d}.json")) for number in (0, 1)]
    assert logs[1]["began"] >= logs[0]["began"] + logs[0]["seconds"]


def test_a_child_that_is_killed_as_it_starts_is_replaced(out: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its pool breaks, and takes no shard any more."""
    children = Children(1)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(children.run, str(out), "eq-x", 0)
        wait_until(lambda: multiprocessing.active_children())[0].kill()
        assert made.result()["kept"] == 1
    assert "made alone" in caplog.text
    assert children.run(str(out), "eq-x", 1)["kept"] == 1
    children.close()


def test_what_a_child_warns_of_is_logged_by_its_parent(
    out: Path, trouble: Any, planned_build: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """There a flow run of Prefect collects it."""
    planned_build(Store(str(out)), "eq-y", SCENES, 1, micro_batch=4)
    trouble("b", "memory 1")
    assert run_in_child(str(out), "eq-y", 1)["micro_batch"] == 1
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [message.partition(" (")[0] for message in warned] == ["eq-y shard 00001: memory ran out"] * 2


def test_two_threads_have_a_child_each(out: Path, trouble: Any, media: Path) -> None:
    for video in "ab":
        trouble(video, "sleep 3600")
    with ThreadPoolExecutor(2) as pool:
        receipts = pool.map(lambda shard: run_in_child(str(out), "eq-x", shard), range(2))
        wait_until(lambda: all((media / f"trouble/{video}.asleep").is_file() for video in "ab"))
        for video in "ab":
            trouble(video)
    assert [receipt["shard"] for receipt in receipts] == [0, 1]
    pids = {(media / "trouble" / f"{video}.asleep").read_text() for video in "ab"}
    assert len(pids) == 2


@contextmanager
def asleep(
    folder: Path, greys: Any, trouble: Any, runner: str, code: Sequence[str] = ()
) -> Iterator[tuple[psutil.Process, list[psutil.Process]]]:
    """A build by the command line, in the middle of its last shard, with its children."""
    recipe = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}).model_dump(mode="json")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    temporary, asleep = folder / "temporary", folder / "media/trouble/d.asleep"
    temporary.mkdir()
    trouble("d", "sleep 3600")
    package = next(path for path in sys.path if list(Path(path).glob("twinset_tests-*.dist-info")))
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{package}"}
    environment.pop("PREFECT_API_URL", None)
    recipe_file, out = str(folder / "recipe.yaml"), str(folder / "out")
    asked = ["-m", "twinset.cli.main", "build", recipe_file, "--out", out, "--workers", "2", "--runner", runner]
    command = [sys.executable, *([*code, recipe_file, out] if code else asked)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as parent:
        try:
            wait_until(asleep.is_file, parent)
            process = psutil.Process(parent.pid)
            yield process, process.children(recursive=True)
        finally:
            parent.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "number"),
    [
        ("threads", signal.SIGINT),
        ("processes", signal.SIGINT),
        ("processes", signal.SIGTERM),
        ("processes", signal.SIGKILL),
    ],
)
def test_an_ended_build_leaves_no_child_no_file_and_can_be_resumed(
    tmp_path: Path, greys: Any, trouble: Any, files_below: Any, no_cards: Any, runner: str, number: int
) -> None:
    with asleep(tmp_path, greys, trouble, runner) as (parent, children):
        assert bool(children) == (runner == "processes")
        parent.send_signal(number)
        wait_until(lambda: not parent.is_running() or parent.status() == psutil.STATUS_ZOMBIE)
        wait_until(lambda: not any(one.is_running() for one in children))
    wait_until(lambda: not any((tmp_path / "temporary").iterdir()))
    trouble("d")
    recipe = recipe_of({"eq-x": greys("eq-x", SCENES, 1)})
    build_here(recipe, str(tmp_path / "out"))
    build_here(recipe, str(tmp_path / "whole"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


@pytest.mark.slow
def test_an_interrupt_in_a_notebook_ends_the_build_too(tmp_path: Path, greys: Any, trouble: Any) -> None:
    """... though nobody there ends the process: `twinset.build` raises, and its children are gone."""
    code = (
        "import sys, psutil, twinset\n"
        "try:\n"
        "    twinset.build(sys.argv[1], sys.argv[2], workers=1, runner='processes')\n"
        "except KeyboardInterrupt:\n"
        "    print([one.name() for one in psutil.Process().children() if 'spawn_main' in ' '.join(one.cmdline())])\n"
    )
    with asleep(tmp_path, greys, trouble, "processes", ["-c", code]) as (parent, children):
        parent.send_signal(signal.SIGINT)
        wait_until(lambda: not parent.is_running() or parent.status() == psutil.STATUS_ZOMBIE)
        wait_until(lambda: not any(one.is_running() for one in children))
    assert not any((tmp_path / "temporary").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.6])
def test_a_build_that_is_killed_while_its_children_start_leaves_no_folder(
    tmp_path: Path, greys: Any, trouble: Any, seconds: float
) -> None:
    """A child sees that the pipe from its parent broke before the system says that the parent is gone."""
    recipe = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}).model_dump(mode="json")
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    (tmp_path / "temporary").mkdir()
    package = next(path for path in sys.path if list(Path(path).glob("twinset_tests-*.dist-info")))
    paths = f"{ROOT / 'src'}{os.pathsep}{package}"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": paths}
    environment.pop("PREFECT_API_URL", None)
    asked = ["build", str(tmp_path / "recipe.yaml"), "--out", str(tmp_path / "out"), "--runner", "processes"]
    command = [sys.executable, "-m", "twinset.cli.main", *asked, "--workers", "2"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as parent:
        process = psutil.Process(parent.pid)
        wait_until(lambda: len(process.children()) > 2)  # with multiprocessing's own
        children = process.children()
        time.sleep(seconds)
        parent.kill()
    wait_until(lambda: not any(one.is_running() for one in children))
    # Children that started since they were listed clean up in their own time.
    wait_until(lambda: list((tmp_path / "temporary").iterdir()) == [])


def _leaves_when_told_to_end(scratch: str) -> None:
    signal.signal(signal.SIGTERM, process_exit)  # as pebble does before it calls `_begin`
    _begin(os.getppid(), scratch)
    Path(scratch, "00000.count").write_text("1")  # of a shard, which may be another child's
    Finalize(None, os.kill, (os.getpid(), signal.SIGTERM), exitpriority=1)  # just before it removes its folder


def test_a_child_that_is_told_to_end_while_it_leaves_still_removes_its_folder(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    child = multiprocessing.get_context("spawn").Process(target=_leaves_when_told_to_end, args=(str(scratch),))
    child.start()
    child.join()
    assert child.exitcode == signal.SIGTERM and not scratch.exists()


def test_a_shard_that_a_stopped_pool_forgot_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    children, failed = Children(1), list[BaseException]()
    monkeypatch.setattr(children._pool, "schedule", lambda *_, **__: Future())

    def make() -> None:
        try:
            children.run("/out", "eq-x", 0)
        except BuildFailed as error:
            failed.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    children.close()
    thread.join()
    assert len(failed) == 1 and "run the same command again" in str(failed[0])
