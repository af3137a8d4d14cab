"""Processes that prepare parts of batches ahead: copies of this one, in which only the index is shared."""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

from twinset.manifests.errors import BuildFailed, TwinsetError

PARENT_CHECK_SECONDS = 1.0

Task = TypeVar("Task")
Made = TypeVar("Made")


class _Tasks(Dataset[Any]):
    """The result of a task, or the error that it raised: torch would send only its text, with a traceback."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __getitem__(self, task: Any) -> Any:
        try:
            return self.make(task)
        except (TwinsetError, OSError) as error:
            return error


def made_ahead(
    make: Callable[[Task], Made], tasks: Iterable[Task], workers: int, ahead: int
) -> Generator[Made, None, None]:
    """The result of each task, in the order of the tasks, made by other processes.

    Closing the iterator ends the processes; they also end soon after this one is killed.

    Args:
        make: called in copies of this process, which share its memory until they write to it.
        workers: processes, at least 1.
        ahead: tasks that each process may have begun before they are asked for.

    Raises:
        BuildFailed: a process was killed, as happens where memory runs out.
        TwinsetError, OSError: a task raised it.
    """
    # The default generator is the training's own: dropout would differ with the number of workers.
    loader = DataLoader(
        _Tasks(make),
        sampler=tasks,
        batch_size=None,
        collate_fn=_as_it_is,
        num_workers=workers,
        prefetch_factor=ahead,
        worker_init_fn=partial(_begin, os.getpid()),
        multiprocessing_context="fork",
        generator=torch.Generator(),
    )
    found = iter(loader)
    try:
        while True:
            try:
                made = next(found)
            except StopIteration:
                return
            except RuntimeError as error:
                raise worker_ended(error) from error
            if isinstance(made, Exception):
                raise made
            yield made
    finally:
        del found, loader  # ends the processes


def worker_ended(error: RuntimeError) -> BuildFailed:
    """What a process that was killed comes to."""
    return BuildFailed(
        f"a process that reads training data has ended ({str(error).strip()}); if memory ran out, choose fewer "
        "--workers. Run the same command again to resume"
    )


def _as_it_is(made: Made) -> Made:
    """Arrays stay arrays: as tensors they would go through /dev/shm, of which a container has 64 MB."""
    return made


def _begin(parent: int, _worker: int) -> None:
    """What a process does first. parent: id of the one that it was copied from."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # tokenizers of transformers would warn of their threads

    def watch() -> None:
        # torch's own watch misses a worker that writes to a pipe which its siblings still hold open.
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
