"""Shards made in child processes: what a child answers, how it dies, and that it never outlives its parent."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.stages.conftest import recipe_of
from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.child_processes import Children, close_children, receipt_in, run_in_child
from twinset.stages.make import make_and_retry

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
ROOT = Path(__file__).parents[2]


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "number"),
    [("threads", signal.SIGINT), ("processes", signal.SIGTERM), ("processes", signal.SIGKILL)],
)
def test_an_ended_build_leaves_no_child_no_file_and_can_be_resumed(
    tmp_path: Path, greys: Any, trouble: Any, media: Path, files_below: Any, no_cards: Any, runner: str, number: int
) -> None:
    recipe, temporary = recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "temporary"
    given = [str(tmp_path / "recipe.yaml"), str(tmp_path / "out")]
    Path(given[0]).write_text(yaml.safe_dump(recipe.model_dump(mode="json")))
    temporary.mkdir()
    trouble("d", "sleep")
    package = next(path for path in sys.path if list(Path(path).glob("twinset_tests-*.dist-info")))
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{package}"}
    environment.pop("PREFECT_API_URL", None)
    command = ["-m", "twinset.cli.main", "build", given[0], "--out", given[1], "--workers", "2", "--runner", runner]
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as parent:
        try:
            wait_until((media / "trouble/d.sleep").is_file, parent)
            children = psutil.Process(parent.pid).children(recursive=True)
            assert bool(children) == (runner != "threads")
            parent.send_signal(number)
            assert parent.wait() == (-9 if number == signal.SIGKILL else 1)
            wait_until(lambda: not any(child.is_running() for child in children))
        finally:
            parent.kill()
    if number != signal.SIGKILL:
        assert list(temporary.iterdir()) == []
    trouble("d")
    build_here(recipe, given[1])
    build_here(recipe, str(tmp_path / "whole"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")
