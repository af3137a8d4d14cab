"""Worker processes: they end with the one that asked, however that ends, and their end is told."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.training.examples.workers import made_ahead

MEGABYTES = 8  # of each result: more than a pipe holds


def squares(number: int) -> tuple[int, bytes]:
    if number == 5:
        raise WrongUse("five")
    return number**2, bytes(MEGABYTES << 20)


def read_for_ever(pids: Path) -> None:
    """What a training does: it reads a few results, and is then busy with them."""
    os.setsid()
    made = made_ahead(blocks, iter(range(1000)), workers=2, ahead=4)
    found = {next(made)[0] for _ in range(4)}
    pids.with_suffix(".part").write_text(" ".join(map(str, found)))
    pids.with_suffix(".part").rename(pids)
    time.sleep(60)


def blocks(_number: int) -> tuple[int, bytes]:
    return os.getpid(), bytes(MEGABYTES << 20)


def wait_for(condition: object, seconds: float = 20) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():  # type: ignore[operator]
        time.sleep(0.05)
        yield


def test_results_come_in_order_and_errors_as_they_were_raised() -> None:
    made = made_ahead(squares, iter(range(8)), workers=2, ahead=2)
    assert [next(made)[0] for _ in range(5)] == [0, 1, 4, 9, 16]
    with pytest.raises(WrongUse, match=r"^five$"):
        next(made)


@pytest.mark.slow
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_process_that_asked(way: signal.Signals, tmp_path: Path) -> None:
    training = multiprocessing.get_context("fork").Process(target=read_for_ever, args=(tmp_path / "pids",))
    training.start()
    for _ in wait_for((tmp_path / "pids").exists):
        pass
    workers = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(workers) == 2 and all(map(psutil.pid_exists, workers))
    # Ctrl-C reaches all processes of the terminal; the others are sent to one.
    (os.killpg if way == signal.SIGINT else os.kill)(training.pid or 0, way)
    training.join(20)
    assert training.exitcode not in (None, 0)
    for _ in wait_for(lambda: not any(map(psutil.pid_exists, workers))):
        pass
    assert not any(map(psutil.pid_exists, workers))


def test_a_worker_that_is_killed_is_told() -> None:
    made = made_ahead(blocks, iter(range(1000)), workers=1, ahead=2)
    os.kill(next(made)[0], signal.SIGKILL)
    with pytest.raises(BuildFailed, match="fewer --workers"):
        for _ in made:
            pass
