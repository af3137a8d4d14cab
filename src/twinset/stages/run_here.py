"""Making shards from this process, in threads, child processes or the workers of a cluster, without Prefect."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Literal, get_args

from twinset.contracts.errors import BuildFailed, WrongUse, in_words
from twinset.contracts.recipe import Recipe
from twinset.contracts.stage import Stage
from twinset.shards.metering import counting
from twinset.shards.storage.store import Store
from twinset.stages.build import Progress, Silent, build
from twinset.stages.child_processes import Children
from twinset.stages.job import Job, check_devices, check_inputs
from twinset.stages.making.cluster import ADDRESSES, Cluster, address_of, check_cluster, open_cluster
from twinset.stages.making.make import make_shard
from twinset.stages.stage_worker import StageWorker
from twinset.stages.status import StageState

#: Of each shard a record at level INFO, whose attribute ``shard`` holds `Shard.record`.
logger = logging.getLogger("twinset.shards")


class Shard:
    """A shard in the making.

    record: what the log says of it: its stage and number (``shard``), candidates ``kept`` and ``rejected``,
    ``seconds``, ``bytes`` of tar and rows, ``attempts``, and the ``error`` that it failed with.
    """

    def __init__(self, stage: str, number: int) -> None:
        self._began = time.monotonic()
        self.record: dict[str, Any] = {"stage": stage, "shard": number, "kept": 0, "rejected": 0, "seconds": 0.0}
        self.record |= {"bytes": 0, "attempts": 0, "error": None}

    def attempt(self) -> None:
        """It is tried."""
        self.record["attempts"] += 1

    def made(self, receipt: Mapping[str, Any]) -> None:
        """It has this receipt."""
        rejected = sum(receipt["rejected"].values())
        self._end(kept=receipt["kept"], rejected=rejected, bytes=receipt["tar_size"] + receipt["rows_size"])

    def failed(self, error: str) -> None:
        """It cannot be made."""
        self._end(error=error)

    def _end(self, **found: Any) -> None:
        record = self.record
        record |= {**found, "seconds": round(time.monotonic() - self._began, 3)}
        words = record["error"] or f"{record['kept']} kept, {record['rejected']} rejected in {record['seconds']} s"
        logger.info("%s shard %05d: %s", record["stage"], record["shard"], words, extra={"shard": record})


Runner = Literal["threads", "processes", "ray", "dask"]
#: Makes a shard, by the root, home and number of it; returns its receipt.
Make = Callable[[str, str, int], dict[str, Any]]
RETRIES = 3
REPORT_SECONDS = 0.2
#: A full disk or a wrong place does not mend by waiting.
HOPELESS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ETIMEDOUT),
)


def build_here(
    recipe: Recipe, out: str, workers: int = 0, runner: Runner = "threads", progress: Progress | None = None
) -> dict[str, Any]:
    """Build a recipe from this process, or resume it.

    Args:
        out: folder or fsspec URL of the dataset.
        workers: shards at a time; 0: one a core, of the cluster where there is one.
        runner: ``threads`` where a source allows it, ``processes`` for all, or a cluster's (`stages.making.cluster`).
        progress: reported to while it runs.

    Returns:
        ``{"subsets": {NAME: {"planned", "kept", "rejected", "shards", "excluded"}}}``.

    Raises:
        WrongUse: before any work, when something in the recipe or its inputs is wrong.
        BuildFailed: after all that could be done was done.
    """
    if workers < 0 or runner not in get_args(Runner):
        known = ", ".join(get_args(Runner))
        raise WrongUse(f"workers {workers}, runner {runner!r}: at least 0 workers of one of the runners {known}")
    store = Store(out)
    check_inputs(recipe, ("annotations", "media", "models"))
    check_runner(recipe, runner)
    progress = progress or Silent()
    here = LocalRunner(workers, runner, progress)
    try:
        job = Job(recipe, store)
        with job.store.for_one_build():
            return build(job, here.run, progress)
    except FileNotFoundError as error:
        error.add_note("another process may have removed it, such as a second build; run the same command again")
        raise
    finally:
        here.close()


def check_runner(recipe: Recipe, runner: Runner, names: Sequence[str] = ()) -> None:
    """Fail before any work where there is no GPU that stages need here, or no cluster to join; names: of the stages."""
    if runner in ADDRESSES:
        check_cluster(runner)
    if runner not in ADDRESSES or address_of(runner) is None:
        check_devices(recipe, names)


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


class LocalRunner:
    """Makes at most ``workers`` shards at a time, of all stages: in threads, children, or a cluster's workers."""

    def __init__(self, workers: int, runner: Runner, progress: Progress) -> None:
        """workers: as for `build_here`."""
        self._workers, self._runner, self._progress = workers, runner, progress
        self._cluster: Cluster | None = None
        self._absent: BuildFailed | None = None  # why no cluster was joined
        self._threads: ThreadPoolExecutor | None = None
        self._opening = threading.Lock()
        self._children: list[Children] = []
        self._closed = threading.Event()

    def _open(self) -> ThreadPoolExecutor:
        """Join the cluster, where shards are made on one, before the first of them; a build often has none to make."""
        with self._opening:
            if self._absent is not None:
                raise self._absent
            if self._threads is None:
                if self._runner in ADDRESSES:
                    try:
                        self._cluster = open_cluster(self._runner, self._workers)
                    except BuildFailed as error:
                        self._absent = error
                        raise
                cores = os.cpu_count() if self._cluster is None else self._cluster.cores
                self._workers = self._workers or cores or 1
                self._slots = threading.BoundedSemaphore(self._workers)
                self._threads = ThreadPoolExecutor(self._workers, "shard")
            return self._threads

    def run(self, job: Job, name: str, state: StageState) -> Sequence[str]:
        """Make the shards of a stage that are not done; returns what failed (`stages.build.RunShards`)."""
        worker, root, home, threads = job.worker(name), job.store.root, state.home, self._open()
        cluster, at_a_time = self._cluster, worker.source.shards_at_a_time or self._workers
        # Each stage has children of its own: two that use Blender cannot share one, and memory is freed when it ends.
        isolated = cluster is None and (self._runner == "processes" or worker.isolated)
        children = Children(min(self._workers, len(state.todo))) if isolated else None
        if children is not None:
            self._children.append(children)
        count = SampleCount(partial(self._progress.samples, name), state)
        if cluster is not None:
            gpu = job.recipe[name].pool == "gpu"
            at_a_time = cluster.gpus if gpu and cluster.gpus else at_a_time
            make: Make = partial(cluster.run, isolated=worker.isolated, gpu=gpu)
        elif children is not None:
            make = partial(_make_in, children, count)
        else:
            make = partial(_make_here, worker.on_this_machine(), state.stage, count)
        own = threading.BoundedSemaphore(at_a_time)
        failures: dict[int, str] = {}

        def work(number: int) -> None:
            shard = Shard(name, number)
            try:
                if self._closed.is_set():
                    return
                shard.made(self._retried(make, root, home, shard))
                count.finish(number)
                self._progress.advance(name)
            except BaseException as error:  # of SystemExit, which a source may raise, a pool says nothing
                failures[number] = in_words(error)
                shard.failed(failures[number])
            finally:
                own.release()
                self._slots.release()

        running: set[Future[None]] = set()
        for number in state.todo:
            # A place is taken before a shard is handed over, so that what waits holds no memory.
            own.acquire()
            self._slots.acquire()
            if self._closed.is_set():
                break
            try:
                running = {one for one in running if not one.done()} | {threads.submit(work, number)}
            except RuntimeError:  # closed meanwhile; the threads of other stages may wait for the place
                own.release()
                self._slots.release()
                break
        wait(running)
        if children is not None:
            children.close()
        told = [failed_shards(name, failures, len(state.todo))] if failures else []
        return [*told, "the build was interrupted"] if self._closed.is_set() else told

    def close(self) -> None:
        """End the children and start nothing more."""
        self._closed.set()
        # Nothing is cancelled: what waits gives its place back, for which the thread of a stage may wait.
        if self._threads is not None:
            self._threads.shutdown(wait=False)
        for children in self._children:
            children.close()
        if self._cluster is not None:
            self._cluster.close()

    def _retried(self, make: Make, root: str, home: str, shard: Shard) -> dict[str, Any]:
        """Make a shard, and try again when the network or a disk had trouble that may pass; returns its receipt."""
        for attempt in range(RETRIES + 1):
            try:
                shard.attempt()
                return make(root, home, shard.record["shard"])
            except OSError as error:
                if error.errno in HOPELESS or attempt == RETRIES or self._closed.wait(_delay(attempt)):
                    raise
        raise AssertionError("the last attempt returns or raises")


def _make_in(children: Children, count: SampleCount, root: str, home: str, number: int) -> dict[str, Any]:
    return children.run(root, home, number, partial(count.so_far, number))


def _make_here(
    worker: StageWorker, stage: Stage, count: SampleCount, root: str, home: str, number: int
) -> dict[str, Any]:
    with counting(partial(count.so_far, number)):
        return make_shard(root, home, number, worker, stage).model_dump()


class SampleCount:
    """Candidates that are made of those that a run makes or finds made, with those of shards in the making.

    They are reported some times a second at most.
    """

    def __init__(self, report: Callable[[int, int], None], state: StageState) -> None:
        self._report, self._sizes = report, {number: state.planned[number].planned for number in state.todo}
        self._done, self._making, self._said = sum(state.done.column("planned")), dict[int, int](), 0.0
        self._all, self._lock = self._done + sum(self._sizes.values()), threading.Lock()
        self._say()

    def so_far(self, number: int, count: int) -> None:
        """So many candidates of a shard are made; one that is begun again counts from 0."""
        with self._lock:
            self._making[number] = min(count, self._sizes[number])
            if time.monotonic() - self._said >= REPORT_SECONDS:
                self._say()

    def finish(self, number: int) -> None:
        """A shard is done."""
        with self._lock:
            self._making.pop(number, None)
            self._done += self._sizes[number]
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        self._report(self._done + sum(self._making.values()), self._all)


def _delay(attempt: int) -> float:
    """Seconds until a shard is tried again."""
    return float(2**attempt)
