"""Worker processes: results in order; they end with the one that asked, however that ends, and their end is told."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.training.examples.workers import made_ahead, named_workers

MEGABYTES = 8  # of each result: more than a pipe holds


def blocks(number: int) -> tuple[int, int, bytes]:
    return number, os.getpid(), bytes(MEGABYTES << 20)


def failing(number: int) -> int:
    if number == 5:
        raise WrongUse("five")
    return int("no number") if number == 6 else number


@pytest.mark.parametrize("workers", [0, 2])
def test_results_come_in_order_and_errors_as_they_were_raised(workers: int) -> None:
    made = made_ahead(failing, iter(range(8)), workers, ahead=2)
    assert [next(made) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(WrongUse, match=r"^five$"):
        next(made)


def read_for_ever(pids: Path) -> None:
    """What a training does: it reads a few results, and is then busy with them."""
    os.setsid()
    made = made_ahead(blocks, iter(range(1000)), workers=2, ahead=4)
    workers = {next(made)[1] for _ in range(4)}
    pids.with_suffix(".part").write_text(" ".join(map(str, workers)))
    pids.with_suffix(".part").rename(pids)
    time.sleep(3600)


@pytest.mark.slow
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_the_process_that_asked(way: signal.Signals, tmp_path: Path) -> None:
    training = multiprocessing.get_context("fork").Process(target=read_for_ever, args=(tmp_path / "pids",))
    training.start()
    wait_until((tmp_path / "pids").exists)
    workers = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(workers) == 2 and all(map(psutil.pid_exists, workers))
    # Ctrl-C reaches all processes of the terminal; the others are sent to one.
    (os.killpg if way == signal.SIGINT else os.kill)(training.pid or 0, way)
    training.join()
    assert training.exitcode not in (None, 0)
    wait_until(lambda: not any(map(psutil.pid_exists, workers)))


@pytest.mark.parametrize("seed", range(6))
def test_a_worker_that_is_killed_at_any_moment_ends_the_training_with_a_message(seed: int) -> None:
    made = made_ahead(blocks, iter(range(100_000)), workers=2, ahead=2)
    killed = random.Random(seed).choice([next(made)[1], next(made)[1]])
    # Another process kills it, so that it dies while this one asks, waits, or has received the half of a result.
    delay = random.Random(seed).random() / 5
    killer = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep({delay}); os.kill({killed}, 9)"])
    with (
        pytest.raises(BuildFailed, match=r"was killed or ended, .* fewer --workers .* run the same command again"),
        named_workers(),
    ):
        for number, _, _ in made:
            if number % 2:
                time.sleep(0.01)  # a step, in which the signal may arrive
    made.close()
    assert killer.wait() == 0
    wait_until(lambda: not multiprocessing.active_children())
