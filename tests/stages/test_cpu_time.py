"""CPU time of shards: threads of libraries are counted, and nothing twice."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from twinset.stages.making.cpu_time import CpuTime


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def made(seconds: float, beside: float, meet: threading.Barrier) -> float:
    """A shard that works in its own thread and in one that a library starts; when both are done all shards end."""
    with CpuTime("stage") as spent:
        meet.wait()
        library = threading.Thread(target=burn, args=[beside])
        library.start()
        burn(seconds)
        library.join()
        meet.wait()
    return spent.core_seconds


def test_a_shard_alone_takes_what_its_threads_take() -> None:
    assert made(0.1, 0.3, threading.Barrier(1)) == pytest.approx(0.4, abs=0.05)


def test_shards_side_by_side_take_their_own_time_and_share_the_rest() -> None:
    began, meet = time.process_time(), threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        took = [*pool.map(made, [0.3, 0.1], [0.2, 0.0], [meet, meet])]
    assert took == pytest.approx([0.4, 0.2], abs=0.05)
    assert sum(took) <= time.process_time() - began


def test_a_shard_that_fails_takes_nothing_from_the_next() -> None:
    with pytest.raises(ValueError), CpuTime("stage"):
        raise ValueError
    burn(0.2)
    assert made(0.1, 0.0, threading.Barrier(1)) == pytest.approx(0.1, abs=0.05)
    with CpuTime("another") as first, CpuTime("another") as second:
        assert first.first and not second.first
