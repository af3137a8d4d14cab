"""Making shards from this process, in threads, child processes or the workers of a Dask cluster, without Prefect."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from twinset.contracts.errors import WrongUse, in_words
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.build import Progress, Silent, build
from twinset.stages.child_processes import Children, receipt_in
from twinset.stages.job import Job, check_devices, check_inputs
from twinset.stages.making.cluster import DaskCluster, make_there
from twinset.stages.making.make import make_and_retry
from twinset.stages.stage_worker import StageWorker
from twinset.stages.status import StageState

logger = logging.getLogger("twinset")
#: Of each shard a record at level INFO, whose attribute ``shard`` holds what `--log json` shows.
shards_log = logging.getLogger("twinset.shards")

Runner = Literal["threads", "processes", "dask"]
Receipt = dict[str, Any]
Begun = tuple[Future[Receipt], float]  # a shard, and when it was begun
ROUND_SECONDS = 0.2


def build_here(
    recipe: Recipe, out: str, workers: int = 0, runner: Runner = "threads", progress: Progress | None = None
) -> dict[str, Any]:
    """Build a recipe from this process, or resume it.

    Args:
        out: folder or fsspec URL of the dataset.
        workers: shards at a time; 0: one a core, of the cluster where there is one.
        runner: ``threads`` where a source allows it, ``processes`` for all, or ``dask`` (`stages.making.cluster`).
        progress: reported to while it runs.

    Returns:
        ``{"subsets": {NAME: {"planned", "kept", "rejected", "shards", "excluded"}}}``.

    Raises:
        WrongUse: before any work, when something in the recipe or its inputs is wrong.
        BuildFailed: after all that could be done was done.
    """
    progress, job = progress or Silent(), Job(recipe, Store(out))
    check_inputs(recipe, ("annotations", "media", "models"))
    here = LocalRunner(recipe, workers, runner, progress)
    try:
        with job.store.for_one_build():
            return build(job, here.run, progress)
    except FileNotFoundError as error:
        error.add_note("another process may have removed it, such as a second build; run the same command again")
        raise
    finally:
        here.close()


class Makers(NamedTuple):
    """What makes shards of a stage, several at a time.

    submit: hands over a shard, by the root, home and number of it. counts: how many candidates are made, by the number
    of the shard. look_after: called some times a second. close: begins nothing more; children end.
    """

    submit: Callable[[str, str, int], Future[Receipt]]
    counts: MutableSequence[int]
    look_after: Callable[[], None]
    close: Callable[[], None]


class LocalRunner:
    """Makes at most ``workers`` shards at a time, of all stages."""

    def __init__(
        self, recipe: Recipe, workers: int, runner: Runner, progress: Progress, names: Collection[str] = ()
    ) -> None:
        """workers: as for `build_here`. names: of the stages; all when empty.

        Fails before any work where there is no GPU that they need here, or no cluster.
        """
        if workers < 0 or runner not in get_args(Runner):
            known = ", ".join(get_args(Runner))
            raise WrongUse(f"workers {workers}, runner {runner!r}: at least 0 workers of one of the runners {known}")
        if runner != "dask":
            check_devices(recipe, names)
        self._runner, self._progress = runner, progress
        self._cluster = DaskCluster() if runner == "dask" else None
        self._workers = workers or (self._cluster.cores if self._cluster else os.cpu_count()) or 1
        self._slots, self._closed = threading.BoundedSemaphore(self._workers), threading.Event()
        self._makers = list[Makers]()

    def run(self, job: Job, name: str, state: StageState) -> Sequence[str]:
        """Make the shards of a stage that are not done; returns what failed (`stages.build.RunShards`).

        Those whose process dies, as the kernel kills where memory runs out, are made again at the end, one at a time.
        """
        worker, root, sizes = job.worker(name), job.store.root, [shard.planned for shard in state.planned]
        made = sum(state.done.column("planned"))
        planned = made + sum(sizes[number] for number in state.todo)
        at_a_time = worker.source.shards_at_a_time or self._workers
        failures, died = dict[int, str](), list[int]()
        self._progress.samples(name, made, planned)
        for numbers, places in ((state.todo, at_a_time), (died, 1)):
            if not numbers:
                continue
            makers = self._open(worker, state, min(places, len(numbers)))
            for ended, running in self._rounds(makers, root, state.home, numbers, places):
                for number, (future, began) in ended.items():
                    try:
                        receipt = receipt_in(future)
                        made += sizes[number]
                        self._progress.advance(name)
                        _log(name, number, began, receipt)
                    except BaseException as error:  # of SystemExit, which a source may raise, a thread says nothing
                        if isinstance(error, ChildProcessError) and numbers is not died:
                            logger.warning("%s shard %05d: %s; made again at the end, alone", state.home, number, error)
                            died.append(number)
                        else:
                            failures[number] = _why(name, error)
                            _log(name, number, began, error=failures[number])
                self._progress.samples(name, made + sum(makers.counts[number] for number in running), planned)
            makers.close()
        told = [failed_shards(name, failures, len(state.todo))] if failures else []
        return [*told, "the build was interrupted"] if self._closed.is_set() else told

    def _rounds(
        self, makers: Makers, root: str, home: str, numbers: Sequence[int], places: int
    ) -> Iterator[tuple[dict[int, Begun], Collection[int]]]:
        """Hand over shards and wait for them, so many at a time, and ``workers`` with those of all stages.

        Gives some times a second the shards that have ended since, and those that are being made.
        """
        left, running = deque(numbers), dict[int, Begun]()
        try:
            while (left or running) and not self._closed.is_set():
                # A place is taken before a shard is handed over, so that what waits holds no memory.
                while left and len(running) < places and self._slots.acquire(timeout=0 if running else ROUND_SECONDS):
                    number = left.popleft()
                    running[number] = makers.submit(root, home, number), time.monotonic()
                done = wait([future for future, _ in running.values()], ROUND_SECONDS, FIRST_COMPLETED).done
                makers.look_after()
                ended = {number: running.pop(number) for number in [*running] if running[number][0] in done}
                for _ in ended:
                    self._slots.release()
                yield ended, running
        finally:
            for _ in running:
                self._slots.release()

    def _open(self, worker: StageWorker, state: StageState, workers: int) -> Makers:
        """What makes shards of a stage. Two that use Blender cannot share a process, and memory is freed at the end."""
        if self._cluster is None and (self._runner == "processes" or worker.isolated):
            children = Children(workers, len(state.planned))
            makers = Makers(children.submit, children.counts, children.look_after, children.close)
        else:
            counts = [0] * len(state.planned)
            if self._cluster is None:
                pool: Executor = ThreadPoolExecutor(workers, "shard")
                make = partial(make_and_retry, worker=worker, stage=state.stage, counts=counts)
            else:
                pool = self._cluster.executor(worker)
                make = partial(make_there, isolated=worker.isolated)
            close = partial(pool.shutdown, wait=False)
            makers = Makers(partial(pool.submit, make), counts, lambda: None, close)
        self._makers.append(makers)
        return makers

    def close(self) -> None:
        """End the children and start nothing more."""
        self._closed.set()
        for makers in self._makers:
            makers.close()
        if self._cluster is not None:
            self._cluster.close()


def failed_shards(name: str, failures: Mapping[int, str], asked: int) -> str:
    """Why shards of a stage failed, by number: five reasons, each once, with five of the shards that it befell."""
    befell: dict[str, list[str]] = {}
    for number, why in sorted(failures.items()):
        befell.setdefault(why, []).append(f"{number:05d}")
    lines = [f"{len(failures)} of {asked} shards failed; run the same command again to make those. First:"]
    for why, numbers in [*befell.items()][:5]:
        more = f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else ""
        lines.append(f"{name} shard{'s' * (len(numbers) > 1)} {', '.join(numbers[:5])}{more}: {why}")
    return "\n".join(lines)


def _why(name: str, error: BaseException) -> str:
    """Why a shard of a stage failed, and what to do about it where that is nothing of its own."""
    if isinstance(error, ChildProcessError):
        return (
            f"{error}; run the same command again, and if it dies again, build this stage alone (--only {name} "
            "--workers 1 --verbose) to see its last words"
        )
    if isinstance(error, CancelledError):
        return "the Dask scheduler ended or cannot be reached any more; start it again, and run the same command again"
    return in_words(error)


def _log(name: str, number: int, began: float, receipt: Mapping[str, Any] | None = None, error: str = "") -> None:
    """A record of a shard that has ended."""
    shard: dict[str, Any] = {"stage": name, "shard": number, "kept": 0, "rejected": 0}
    shard |= {"seconds": round(time.monotonic() - began, 3), "bytes": 0, "error": error or None}
    if receipt is not None:
        shard |= {"kept": receipt["kept"], "rejected": sum(receipt["rejected"].values())}
        shard["bytes"] = receipt["tar_size"] + receipt["rows_size"]
    words = error or f"{shard['kept']} kept, {shard['rejected']} rejected in {shard['seconds']} s"
    shards_log.info("%s shard %05d: %s", name, number, words, extra={"shard": shard})
