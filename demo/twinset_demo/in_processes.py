"""What twinset makes itself is made by one process a core: most of that is Python, which threads do not speed up."""

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from twinset import BuildFailed

Given = TypeVar("Given")
Made = TypeVar("Made")


def in_processes(make: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
    """Call a function with each argument, side by side, in processes that end afterwards; results in order.

    Args:
        make: a function of a module, or a `functools.partial` of one; where it runs must not change what it makes.
        given: its arguments, those that take longest first.

    Raises:
        BuildFailed: a process died; otherwise whatever ``make`` raises.
    """
    arguments = list(given)
    workers = min(len(os.sched_getaffinity(0)), len(arguments))
    if workers < 2 or multiprocessing.current_process().daemon:  # those may not have children
        return [make(one) for one in arguments]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        try:
            return list(pool.map(make, arguments))
        except BrokenProcessPool as error:
            raise BuildFailed(
                "a process that makes built-in data died; run the same command again (a script calls twinset below "
                '`if __name__ == "__main__":`, as docs/python.md shows)'
            ) from error
