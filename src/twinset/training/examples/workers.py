"""Processes that prepare data ahead: those of torch's DataLoader, copies of this one."""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

from twinset.contracts.errors import BuildFailed, TwinsetError, in_words

PARENT_CHECK_SECONDS = 1.0
Task = TypeVar("Task")
Made = TypeVar("Made")


def made_ahead(
    make: Callable[[Task], Made], tasks: Iterable[Task], workers: int, ahead: int
) -> Generator[Made, None, None]:
    """The result of each task, in the order of the tasks. Closing the iterator ends the processes.

    Args:
        make: called in copies of this process, which share its memory until they write to it.
        workers: processes; 0: this one makes each result when it is asked for.
        ahead: tasks that each process may have begun before they are asked for.

    Raises:
        BuildFailed: a task raised another error. RuntimeError: a process was killed, see `named_workers`.
        TwinsetError: a task raised it.
    """
    if not workers:
        yield from map(make, tasks)
        return
    loader: Iterable[Any] = DataLoader(
        _Results(make),
        sampler=tasks,
        batch_size=None,
        collate_fn=lambda made: made,  # tensors would go through /dev/shm, of which a container has 64 MB
        num_workers=workers,
        prefetch_factor=ahead,
        multiprocessing_context="fork",
        worker_init_fn=partial(_begin, os.getpid()),
        generator=torch.Generator(),
    )
    for made in loader:
        if isinstance(made, Exception):
            raise made
        yield made


@contextmanager
def named_workers() -> Iterator[None]:
    """`BuildFailed` for the `RuntimeError` by which torch tells, anywhere in the main thread, that a process ended."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker"):
            raise
        # Without its traceback, which holds the other processes.
        raise BuildFailed(
            f"a process that reads training data was killed or ended, as happens where memory runs out ({error}); "
            "choose fewer --workers or a smaller --batch, or free some memory, and run the same command again to resume"
        ) from error.with_traceback(None)


class _Results(Dataset[Any]):
    """The result of a task, or its error: as it is, since torch would join it to its traceback."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __getitem__(self, task: Any) -> Any:
        try:
            return self.make(task)
        except TwinsetError as error:
            return error
        except Exception as error:  # those of libraries may not survive the way between processes
            return BuildFailed(in_words(error))


def _begin(parent: int, _number: int) -> None:
    """What a process does before its first task. parent: id of the one that it was copied from."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # tokenizers of transformers would warn of their threads

    def watch() -> None:
        # Where the parent is killed, torch's process would wait for ever for somebody to take its last result.
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
