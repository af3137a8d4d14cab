"""Building a recipe: each stage is planned, made and indexed, in the order of the DAG; then the dataset is finished.

What makes the shards (threads and processes here, or runs in Prefect's work pools) is a function of a stage that
returns what failed; everything else is the same for all of them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from functools import partial
from graphlib import TopologicalSorter
from typing import Any, Literal, get_args

from twinset.contracts.errors import BuildFailed, DecisionsMissing, TwinsetError, WrongUse, in_words
from twinset.contracts.receipt import Receipt
from twinset.shards.storage.spool import Spool
from twinset.stages.child_processes import ChildDied, Children, receipt_in
from twinset.stages.cluster import DaskCluster, make_there
from twinset.stages.dataset import finish_dataset
from twinset.stages.finish import MakeShards, Progress, settle
from twinset.stages.job import Job, StageState, StageWorker
from twinset.stages.make import make_and_retry
from twinset.stages.plan import prepare

logger = logging.getLogger("twinset")
#: Of each shard a record at level INFO, whose attribute ``shard`` holds what `--log json` shows.
shards_log = logging.getLogger("twinset.shards")

Runner = Literal["threads", "processes", "dask"]
Begun = tuple[Future[Receipt], float]  # a shard, and when it was begun
ROUND_SECONDS = 0.2
DIED = (
    "{error}; run the same command again, and if it dies again, build this stage alone (--only {name} --workers 1 "
    "--verbose) to see its last words"
)
LOST = "the Dask scheduler ended or cannot be reached any more; start it again, and run the same command again"


def build_here(job: Job, workers: int, runner: Runner, progress: Progress) -> dict[str, Any]:
    """Build a recipe from this process, or resume it (`twinset.build`)."""
    job.check_inputs(("annotations", "media", "models"))
    with ExitStack() as held:  # the claim, until what an interrupt stops has ended: shards first, then stages
        held.enter_context(job.store.for_one_build())
        pool = held.enter_context(ThreadPoolExecutor(max(len(job.recipe.all), 1), "stage"))
        here = held.enter_context(closing(LocalRunner(job, workers, runner, progress)))
        return _build(job, pool, here.make_shards, progress)


def _build(job: Job, pool: Executor, make_shards: MakeShards, progress: Progress) -> dict[str, Any]:
    """Build all stages of a recipe, independent ones side by side; whatever is done already stays.

    pool: has a place for every stage. Returns and raises as `twinset.build`.
    """
    sorter = TopologicalSorter({name: job.recipe.reads(name) for name in job.recipe.all})
    sorter.prepare()
    failures: dict[str, BaseException] = {}
    running: dict[Future[None], str] = {}
    while sorter.is_active():
        for name in sorter.get_ready():
            running[pool.submit(build_stage, job, name, make_shards, progress)] = name
        if not running:
            break  # what is left reads a stage that failed or waits
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            name = running.pop(future)
            if error := future.exception():
                failures[name] = error
            else:
                sorter.done(name)
    waits = [error for error in failures.values() if isinstance(error, DecisionsMissing)]
    unfinished = [name for name in job.recipe.all if name not in job.settled]
    if len(waits) < len(failures):
        raise failure_of(failures, [name for name in unfinished if name not in failures])
    made = finish_dataset(job, make_shards, progress, unfinished)
    if waits:
        raise DecisionsMissing.of_all(waits)
    return made


def failure_of(failures: Mapping[str, BaseException], not_begun: Sequence[str]) -> BaseException:
    """One error for all stages that failed. not_begun: those that read one of them."""
    messages = []
    for name, error in failures.items():
        logger.info("%s failed", name, exc_info=error)
        messages.append(in_words(error) if isinstance(error, TwinsetError) else f"{name}: {in_words(error)}")
    if not_begun:
        messages.append(f"not built, because they read a stage that failed or waits: {', '.join(not_begun)}")
    kind = WrongUse if all(isinstance(error, WrongUse) for error in failures.values()) else BuildFailed
    return kind("\n".join(messages))


def build_stage(job: Job, name: str, make_shards: MakeShards, progress: Progress) -> None:
    """Plan a stage, make the shards that are not done, and write its index; every stage that it reads is finished."""
    try:
        progress.phase(name, "planning")
        prepare(job, name)
        settle(job, name, make_shards, progress)
    finally:
        progress.phase(name, "")


class LocalRunner:
    """Makes at most ``workers`` shards at a time, of all stages."""

    def __init__(self, job: Job, workers: int, runner: Runner, progress: Progress, names: Collection[str] = ()) -> None:
        """names: of the stages; all when empty. Fails where a GPU that they need here is absent, or the cluster."""
        if workers < 0 or runner not in get_args(Runner):
            known = ", ".join(get_args(Runner))
            raise WrongUse(f"workers {workers}, runner {runner!r}: at least 0 workers of one of the runners {known}")
        if runner != "dask":
            job.check_devices(names)
        Spool(None).sweep()
        self._runner, self._progress = runner, progress
        self._cluster = DaskCluster() if runner == "dask" else None
        self._workers = workers or (self._cluster.cores if self._cluster else len(os.sched_getaffinity(0)))
        self._slots, self._closed = threading.BoundedSemaphore(self._workers), threading.Event()
        self._runs = list[Future[None]]()

    def close(self) -> None:
        """End the children and start nothing more."""
        self._closed.set()
        wait(self._runs)
        if self._cluster is not None:
            self._cluster.close()
        Spool(None).sweep()  # a child of a killed build can have outlived the sweep at the beginning

    def make_shards(self, job: Job, name: str, state: StageState) -> Sequence[str]:
        """Make the shards of a stage that are not done; returns what failed (`stages.finish.MakeShards`)."""
        run = Future[None]()
        self._runs.append(run)
        try:
            failures = self._make(job.store.root, job.worker(name), state)
        finally:
            run.set_result(None)
        messages = [failed_shards(name, failures, len(state.todo))] if failures else []
        return [*messages, "the build was interrupted"] if self._closed.is_set() else messages

    def _make(self, root: str, worker: StageWorker, state: StageState) -> dict[int, str]:
        """Make the shards of a stage; returns why some failed.

        Those whose process dies, as the kernel kills where memory runs out, are made again at the end, one at a time.
        """
        name, sizes = worker.name, [shard.planned for shard in state.planned]
        made = sum(state.done.column("planned"))
        planned = made + sum(sizes[number] for number in state.todo)
        failures, died = dict[int, str](), list[int]()
        self._progress.samples(name, made, planned)
        for numbers, at_a_time in ((state.todo, worker.source.shards_at_a_time or self._workers), (died, 1)):
            if not numbers:
                continue
            executor, make = self._open(worker, state, min(at_a_time, len(numbers)))
            try:
                for ended in self._rounds(executor, partial(make, root, state.home), numbers, at_a_time):
                    for number, (future, began) in ended.items():
                        receipt, failures[number] = None, ""
                        try:
                            receipt = receipt_in(future)
                        except ChildDied as error:
                            if numbers is not died:
                                logger.warning("%s shard %05d: %s; made again at the end, alone", name, number, error)
                                died.append(number)
                                continue
                            failures[number] = DIED.format(error=error, name=name)
                        except CancelledError:
                            failures[number] = LOST
                        except KeyboardInterrupt:
                            raise
                        except BaseException as error:
                            failures[number] = in_words(error)
                        else:
                            made += sizes[number]
                            self._progress.advance(name)
                            self._progress.samples(name, made, planned)
                        _log(name, number, began, receipt, failures[number])
            finally:
                if self._cluster is None:
                    executor.shutdown(wait=False)
        return {number: why for number, why in failures.items() if why}

    def _open(self, worker: StageWorker, state: StageState, workers: int) -> tuple[Executor, Callable[..., Receipt]]:
        """What makes shards of a stage, and by what function.

        Each stage has its own: two that use Blender cannot share a process, and memory is freed at the end.
        """
        if self._cluster is not None:
            return self._cluster.executor(worker), partial(make_there, isolated=worker.isolated)
        if self._runner == "processes" or worker.isolated:
            return Children(workers), make_and_retry
        return ThreadPoolExecutor(workers, "shard"), partial(make_and_retry, worker=worker, stage=state.stage)

    def _rounds(
        self, executor: Executor, make: Callable[[int], Receipt], numbers: Sequence[int], at_a_time: int
    ) -> Iterator[dict[int, Begun]]:
        """Hand over shards and wait for them, so many at a time, and ``workers`` with those of all stages.

        Gives some times a second the shards that have ended since.
        """
        left, running = deque(numbers), dict[int, Begun]()
        try:
            while (left or running) and not self._closed.is_set():
                # A place is taken before a shard is handed over, so that what waits holds no memory.
                while (
                    left and len(running) < at_a_time and self._slots.acquire(timeout=0 if running else ROUND_SECONDS)
                ):
                    try:
                        running[left[0]] = executor.submit(make, left[0]), time.monotonic()
                    except BaseException:
                        self._slots.release()
                        raise
                    left.popleft()
                wait([future for future, _ in running.values()], ROUND_SECONDS, FIRST_COMPLETED)
                if isinstance(executor, Children):
                    executor.look_after()
                elif self._cluster is not None and self._cluster.lost:  # Dask would try for ever to reach it
                    lost = Future[Receipt]()
                    lost.set_exception(CancelledError())
                    running = {number: (lost, began) for number, (_, began) in running.items()}
                ended = {number: running.pop(number) for number in [*running] if running[number][0].done()}
                for _ in ended:
                    self._slots.release()
                yield ended
        finally:
            for _ in running:
                self._slots.release()


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


def _log(name: str, number: int, began: float, receipt: Receipt | None, error: str) -> None:
    """A record of a shard that has ended; without a receipt for its error."""
    seconds, kept, rejected, size = round(time.monotonic() - began, 3), 0, 0, 0
    if receipt is not None:
        kept, rejected = receipt.kept, sum(receipt.rejected.values())
        size = receipt.tar_size + receipt.rows_size
    shard = {"stage": name, "shard": number, "kept": kept, "rejected": rejected, "seconds": seconds}
    shard |= {"bytes": size, "error": error or None}
    words = error or f"{kept} kept, {rejected} rejected in {seconds} s"
    shards_log.info("%s shard %05d: %s", name, number, words, extra={"shard": shard})
