"""Shards in child processes, for what must not share one: dlib corrupts its heap in two threads, Blender has one scene.

A child that dies takes down the shard that it was making and no other. Children end when their parent does, however
that ends; temporary files of a killed one (unpacked assets, a render: up to gigabytes) go with the next build.
"""

import contextlib
import logging
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from logging.handlers import QueueHandler
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.util import Finalize
from typing import Any

from pebble import ProcessExpired, ProcessPool

from twinset.contracts.receipt import Receipt
from twinset.shards.storage.spool import Spool
from twinset.stages.make import make_and_retry

logger = logging.getLogger("twinset")

CHECK_SECONDS = 0.2
ENDING_SECONDS = 10.0  # for children without work to end by themselves
EXITED = 256  # stands for exit code 0


class _Process(SpawnProcess):
    """A child whose exit code is never 0: pebble would take that for a planned end, and wait for its shard for ever."""

    @property
    def exitcode(self) -> int | None:
        code: int | None = super().exitcode
        return EXITED if code == 0 else code


class _Spawn(SpawnContext):
    Process = _Process


class Children(Executor):
    """A pool of processes that make shards, which start with the first; of the thread that opens it."""

    def __init__(self, workers: int) -> None:
        context = _Spawn()
        self._records = context.Queue()
        given = (os.getpid(), self._records, logger.getEffectiveLevel())
        self._new_pool = partial(ProcessPool, workers, context=context, initializer=_begin, initargs=given)
        self._pool, self._futures = self._new_pool(), list[Future[Receipt]]()

    def submit(self, make: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        """Hand over a shard; `receipt_in` has what becomes of it."""
        self.look_after()
        future: Future[Any] = Future()
        try:
            future = self._pool.schedule(make, given, named)
        except RuntimeError:  # it breaks just now
            future.set_exception(BrokenProcessPool())
        self._futures.append(future)
        return future

    def look_after(self) -> None:
        """Log what children warned of: in this thread, whose log a run of Prefect collects.

        A pool of which a child is killed as it starts breaks, and forgets its shards: another replaces it.
        """
        self._log()
        self._futures = [future for future in self._futures if not future.done()]
        if not self._pool.active:
            self._stop()
            self._pool = self._new_pool()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the children, whatever they are doing: what has no receipt yet is lost."""
        if all(future.done() for future in self._futures):  # they end by themselves, and give back what they hold
            self._pool.close()  # type: ignore[no-untyped-call]
            with contextlib.suppress(TimeoutError):
                self._pool.join(ENDING_SECONDS)
        self._stop()
        self._log()
        Spool(None).sweep()

    def _log(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                logger.handle(self._records.get_nowait())

    def _stop(self) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()
        for future in self._futures:
            if not future.done():
                future.set_exception(BrokenProcessPool())


class ChildDied(ChildProcessError):
    """The process that made a shard died; an OSError, so that Prefect tries again."""


def receipt_in(future: Future[Receipt]) -> Receipt:
    """The receipt of a shard that has ended; raises what `stages.make.make_and_retry` raised, or `ChildDied`."""
    try:
        return future.result()
    except ProcessExpired as error:
        how = f"signal {-error.exitcode}" if error.exitcode < 0 else f"exit code {error.exitcode % EXITED}"
        raise ChildDied(f"its process died ({how})") from error
    except BrokenProcessPool as error:
        raise ChildDied(
            "its process died as it started; a script that builds needs the line if __name__ == '__main__': before it"
        ) from error


_lock = threading.Lock()
_idle: defaultdict[str, list[Children]] = defaultdict(list)  # of `run_in_child`, by stage


def run_in_child(root: str, home: str, number: int) -> Receipt:
    """As `receipt_in`, of a shard made in a child of this process, kept for the stage's next; from any thread."""
    multiprocessing.current_process().daemon = False  # as Dask's workers are, which may have no children
    stage = f"{root}/{home}"
    with _lock:
        idle = _idle[stage]
        children = idle.pop() if idle else Children(1)
    try:
        future = children.submit(make_and_retry, root, home, number)
        while not wait([future], CHECK_SECONDS).done:
            children.look_after()
        return receipt_in(future)
    finally:
        children.look_after()
        with _lock:
            if kept := _idle.get(stage) is idle:  # else they were closed meanwhile
                idle.append(children)
        if not kept:
            children.shutdown()


def close_children() -> None:
    """End the children of `run_in_child`, those that make a shard once they have; used at the end of a run."""
    with _lock:
        closed = [children for idle in _idle.values() for children in idle]
        _idle.clear()
    for children in closed:
        children.shutdown()


# What follows runs in children.
def _begin(parent: int, records: Any, level: int) -> None:
    folder = tempfile.mkdtemp(prefix=f"{Spool(None).prefix}{os.getpid()}.")
    Finalize(None, shutil.rmtree, (folder, True), exitpriority=0)
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars of libraries that load models would break those of the build
    # Blender and dlib print what they like on stdout, which is the command line's for its JSON.
    sys.stdout.flush()
    os.dup2(2, 1)
    logger.setLevel(level)
    logger.addHandler(QueueHandler(records))


def _end_with(parent: int, folder: str) -> None:
    """Have this process end soon after its parent has: it would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
