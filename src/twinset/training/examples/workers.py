"""Processes that prepare parts of batches ahead: copies of this one, in which only the index is shared.

Each has a pipe of its own, and no lock is shared: one that is killed, at whatever moment, holds up nobody.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import torch

from twinset.contracts.errors import BuildFailed, TwinsetError, in_words

PARENT_CHECK_SECONDS = 1.0

Task = TypeVar("Task")
Made = TypeVar("Made")


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
    with ExitStack() as stack:
        started = [stack.enter_context(_started(make)) for _ in range(workers)]
        asked = deque[tuple[BaseProcess, Connection]]()
        for number, task in enumerate(tasks):
            asked.append(started[number % workers])
            with suppress(OSError):  # one that has ended is noticed when its result is asked for
                asked[-1][1].send(task)
            if len(asked) > workers * ahead:
                yield _result(*asked.popleft())
        while asked:
            yield _result(*asked.popleft())


@contextmanager
def _started(make: Callable[[Any], Any]) -> Iterator[tuple[BaseProcess, Connection]]:
    """A process that answers each task that it is sent, in order; it ends with the context."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(make, theirs, os.getpid()), daemon=True)
    process.start()
    theirs.close()  # before the next process starts: open in its own process alone, it closes with that
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def _result(process: BaseProcess, pipe: Connection) -> Any:
    try:
        made = pipe.recv()
    except (EOFError, OSError) as error:
        process.join()
        ended, remedy = f"ended with exit code {process.exitcode}", "run the same command again to resume"
        if process.exitcode == -signal.SIGKILL:
            ended = "was killed, as happens where memory runs out"
            remedy = f"choose fewer --workers or a smaller --batch, or free some memory, and {remedy}"
        raise BuildFailed(f"a process that reads training data {ended}; {remedy}") from error
    if isinstance(made, Exception):
        raise made
    return made


def _work(make: Callable[[Any], Any], pipe: Connection, parent: int) -> None:
    """What a process does. parent: id of the one that it was copied from."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # tokenizers of transformers would warn of their threads
    torch.set_num_threads(1)  # those of the parent are not copied, and would be waited for

    def watch() -> None:
        # The pipe does not tell: our end of it is open in the processes that were started later.
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with ThreadPoolExecutor(1) as sender:  # results wait in it while the next are made
        while True:
            task = pipe.recv()
            try:
                made = make(task)
            except TwinsetError as error:
                made = error
            except Exception as error:
                # Errors of libraries may not survive the way between processes.
                plain = isinstance(error, OSError) and type(error).__module__ == "builtins"
                made = error if plain else BuildFailed(in_words(error))
            # Arrays stay arrays: as tensors they would go through /dev/shm, of which a container has 64 MB.
            sender.submit(pipe.send_bytes, pickle.dumps(made))
