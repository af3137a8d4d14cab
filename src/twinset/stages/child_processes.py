"""Shards in child processes, for what must not share one: dlib corrupts its heap in two threads, Blender has one scene.

A crash takes down the shard that was being made and no other; it is made again once those beside it have ended.
Children end when their parent does, however that ends, and their temporary files (unpacked assets, a render: up to
gigabytes) go with them.
"""

import contextlib
import glob
import logging
import multiprocessing
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.util import Finalize
from types import FrameType
from typing import Any

from pebble import ProcessExpired, ProcessFuture, ProcessPool

from twinset.contracts.errors import BuildFailed, TwinsetError, in_words
from twinset.shards.metering import counting
from twinset.shards.storage.spool import Spool

logger = logging.getLogger("twinset")

CLOSED = "the build was ended before it was made; run the same command again"
WARNING_END = "\0"
PARENT_CHECK_SECONDS = 0.5
CLOSED_CHECK_SECONDS = 0.5
EXITED = 256  # stands for exit code 0
SWEEPS = 20  # of a folder that the thread at work may still be writing into


class _Process(SpawnProcess):
    """A child whose exit code is never 0: pebble would take that for a planned end, and wait for its shard for ever."""

    @property
    def exitcode(self) -> int | None:
        code: int | None = super().exitcode
        return EXITED if code == 0 else code


class _Spawn(SpawnContext):
    Process = _Process


class Children:
    """A pool of processes that make shards; they start when they are needed."""

    def __init__(self, workers: int) -> None:
        # The first child creates it: what is killed before it has children leaves nothing. What is killed with them
        # leaves it to the next.
        spool = Spool(None)
        spool.sweep()
        self._scratch = str(spool.parent / f"{spool.prefix}{os.getpid()}.{secrets.token_hex(8)}")
        _scratches.append(self._scratch)
        self._workers = workers
        self._closed, self._replacing = threading.Event(), threading.Lock()
        self._pool = self._open()

    def _open(self) -> ProcessPool:
        return ProcessPool(self._workers, context=_Spawn(), initializer=_begin, initargs=(os.getpid(), self._scratch))

    def run(
        self, root: str, home: str, number: int, on_count: Callable[[int], None] = lambda count: None
    ) -> dict[str, Any]:
        """Make one shard; returns its receipt, or raises what `stages.making.make.make_shard` raised.

        A shard whose process is killed is made again, alone: the kernel does so (signal 9) where memory runs out.

        on_count: takes now and then how many of its candidates are made.
        """
        try:
            with _places.beside_others():
                return self._made(root, home, number, on_count)
        except (ProcessExpired, BrokenProcessPool) as error:
            if getattr(error, "exitcode", -1) >= 0 or self._closed.is_set():
                raise _died(home, error) from error
            logger.warning("%s shard %05d: its process died (%s); made alone", home, number, _how(error))
        try:
            with _places.alone():
                return self._made(root, home, number, on_count)
        except (ProcessExpired, BrokenProcessPool) as error:
            raise _died(home, error) from error

    def _made(self, root: str, home: str, number: int, on_count: Callable[[int], None]) -> dict[str, Any]:
        counted, warned = (f"{self._scratch}/{number:05d}.{what}" for what in ("count", "warnings"))
        try:
            if self._closed.is_set():
                raise BuildFailed(CLOSED)
            pool, future = self._schedule(root, home, number, counted, warned)
            # A pool that is stopped or breaks just then forgets the shard, and nobody would be told.
            while not wait([future], CLOSED_CHECK_SECONDS).done:
                with contextlib.suppress(OSError, ValueError), open(counted) as stream:
                    on_count(int(stream.read()))
                if self._closed.is_set():
                    raise BuildFailed(CLOSED)
                if not pool.active and not future.done():
                    raise BrokenProcessPool
            receipt: dict[str, Any] = future.result()
            return receipt
        finally:
            # Logged here, where a flow run of Prefect collects what is logged.
            with contextlib.suppress(FileNotFoundError), open(warned, encoding="utf-8", errors="replace") as stream:
                for message in stream.read().split(WARNING_END)[:-1]:
                    logger.warning("%s", message)
                os.remove(warned)

    def _schedule(self, *arguments: str | int) -> tuple[ProcessPool, ProcessFuture[dict[str, Any]]]:
        """Hand over a shard. A pool of which a child was killed while it started takes none: another replaces it."""
        with self._replacing:
            try:
                return self._pool, self._pool.schedule(_run, args=[*arguments])
            except RuntimeError:
                if self._closed.is_set():
                    raise BuildFailed(CLOSED) from None
                self._pool.stop()  # type: ignore[no-untyped-call]
                self._pool = self._open()
                return self._pool, self._pool.schedule(_run, args=[*arguments])

    def close(self) -> None:
        """End the children, whatever they are doing: what has no receipt yet is lost."""
        self._closed.set()
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()
        shutil.rmtree(self._scratch, ignore_errors=True)


def _how(error: ProcessExpired | BrokenProcessPool) -> str:
    if isinstance(error, BrokenProcessPool):
        return "as it started"
    return f"signal {-error.exitcode}" if error.exitcode < 0 else f"exit code {error.exitcode % EXITED}"


def _died(home: str, error: ProcessExpired | BrokenProcessPool) -> BuildFailed:
    return BuildFailed(
        f"its process died ({_how(error)}); run the same command again, and if it dies again, build this stage alone "
        f"(--only {home.rsplit('/', 1)[-1]} --workers 1 --verbose) to see its last words"
    )


class _Places:
    """Who makes a shard in a child now, of all threads of this process: many side by side, or one alone."""

    def __init__(self) -> None:
        self._turn, self._ended, self._at_work = threading.Lock(), threading.Condition(), 0

    @contextlib.contextmanager
    def beside_others(self) -> Iterator[None]:
        """Begins at once, unless a thread is or wants to be alone."""
        with self._turn, self._ended:
            self._at_work += 1
        try:
            yield
        finally:
            with self._ended:
                self._at_work -= 1
                self._ended.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Begins once the others have ended; none begins meanwhile."""
        with self._turn:
            with self._ended:
                self._ended.wait_for(lambda: self._at_work == 0)
            close_children()  # what idle ones hold in memory is free then
            yield


def close_children() -> None:
    """End the children of `run_in_child` that are idle; used at the end of a run."""
    with _lock:
        for idle in _alone.values():
            while idle:
                idle.pop().close()


_places = _Places()
_scratches: list[str] = []
_alone: defaultdict[str, list[Children]] = defaultdict(list)  # by stage
_lock = threading.Lock()


def run_in_child(root: str, home: str, number: int) -> dict[str, Any]:
    """Make one shard in a child of this process, kept for the stage's next; as many at a time as threads call it."""
    multiprocessing.current_process().daemon = False  # as Dask's workers are, which may have no children
    with _lock:
        idle = _alone[f"{root}/{home}"]
        children = idle.pop() if idle else Children(1)
    try:
        return children.run(root, home, number)
    finally:
        with _lock:
            idle.append(children)


def remove_scratch() -> None:
    """Remove the temporary files of this process's children, which have been ended."""
    for scratch in _scratches:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(root: str, home: str, number: int, counted: str, warned: str) -> dict[str, Any]:
    from twinset.stages.making.make import make_shard

    written = 0.0
    warnings = logging.FileHandler(warned, encoding="utf-8", delay=True)
    warnings.setLevel(logging.WARNING)
    warnings.terminator = WARNING_END

    def write(count: int) -> None:
        nonlocal written
        if time.monotonic() - written >= CLOSED_CHECK_SECONDS:
            written = time.monotonic()
            with contextlib.suppress(OSError), open(counted, "w") as stream:
                stream.write(str(count))

    logger.addHandler(warnings)
    try:
        with counting(write):
            return make_shard(root, home, number).model_dump(mode="json")
    except (TwinsetError, OSError):
        raise
    except Exception as error:
        # Others may not survive the way between processes, and their traceback does not.
        traceback.print_exc()
        raise BuildFailed(in_words(error)) from None
    finally:
        logger.removeHandler(warnings)
        warnings.close()


def _begin(parent: int, scratch: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its children
    own = os.path.join(scratch, str(os.getpid()))
    # When the parent is killed its pipe breaks and ends this process, mostly before `watch` looks for the parent again.
    Finalize(None, _leave, (scratch, own), exitpriority=0)
    _leave_at_sigterm(scratch, own)
    for folder in (scratch, own):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    os.environ["TMPDIR"] = tempfile.tempdir = own
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars of libraries that load models would break those of the build
    # Blender and dlib print what they like on stdout, which is the command line's for its JSON.
    sys.stdout.flush()
    os.dup2(2, 1)
    _end_with_parent(parent, scratch)


def _leave(scratch: str, own: str) -> None:
    shutil.rmtree(own, ignore_errors=True)
    # A killed parent leaves them; of a shard that is still being made elsewhere they are written again.
    for left in glob.glob(f"{glob.escape(scratch)}/*.*"):
        with contextlib.suppress(OSError):
            os.remove(left)
    with contextlib.suppress(OSError):  # others are still there
        os.rmdir(scratch)


def _leave_at_sigterm(scratch: str, own: str) -> None:
    """A pool that closes breaks the pipe first and sends SIGTERM next: pebble would end this process in mid-leave."""
    pebbles = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: FrameType | None) -> None:
        _leave(scratch, own)
        if callable(pebbles):
            pebbles(number, frame)

    signal.signal(signal.SIGTERM, end)


def _end_with_parent(parent: int, scratch: str) -> None:
    """Have this process end soon after its parent has, with exit code 1: it would wait for work for ever.

    The temporary files go first, in a thread beside what is at work. parent: the parent's process id, as the parent
    gave it: it may have ended before this process could ask.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        for _ in range(SWEEPS):
            shutil.rmtree(scratch, ignore_errors=True)
            if not os.path.exists(scratch):
                break
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
