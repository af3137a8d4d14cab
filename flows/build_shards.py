"""The flow ``build-shards``: makes a range of the shards of one stage, those that have no valid receipt yet."""

import logging
import os
import socket
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.context import TagsContext
from prefect.futures import wait
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task, exponential_backoff

from twinset.contracts.errors import BuildFailed, naming
from twinset.flows.artifacts import told
from twinset.flows.pools import RANGE_NAME, Runner
from twinset.shards.records import read_planned
from twinset.shards.storage.store import Store
from twinset.stages.build import failed_shards
from twinset.stages.child_processes import close_children, run_in_child
from twinset.stages.cluster import ADDRESS
from twinset.stages.job import forget_workers, job_of
from twinset.stages.make import HOPELESS, RETRIES, make_shard


def task_runner(runner: Runner, workers: int) -> TaskRunner[Any]:
    """A Prefect task runner of ``workers`` shards at a time; 0 means one a core.

    ``ray`` joins the cluster at RAY_ADDRESS, or starts one of all cores; ``dask`` that at DASK_SCHEDULER_ADDRESS.
    """
    workers = workers or os.cpu_count() or 1
    if runner in ("threads", "processes"):
        kind = ThreadPoolTaskRunner if runner == "threads" else ProcessPoolTaskRunner
        return kind(max_workers=workers)
    if runner == "ray":
        from prefect_ray.task_runners import RayTaskRunner

        return RayTaskRunner()  # type: ignore[no-any-return]
    from prefect_dask.task_runners import DaskTaskRunner

    logging.getLogger("distributed").setLevel(logging.WARNING)  # Prefect shows the root's log lines
    address = os.environ.get(ADDRESS)
    local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    return DaskTaskRunner(address=address or None, cluster_kwargs=None if address else local)


SHARDS_A_RUN = 1000  # Prefect loses task records of much larger runs


def _is_io_trouble(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Retry when the network or a disk had trouble that may pass; a full disk or a wrong input stays."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, OSError) and error.errno not in HOPELESS


#: Of a task of which nothing is kept, and which is tried again when the network or a disk had trouble that may pass.
RETRIED: dict[str, Any] = {
    "retries": RETRIES,
    "retry_delay_seconds": exponential_backoff(backoff_factor=1),
    "retry_condition_fn": _is_io_trouble,
    "cache_policy": NO_CACHE,
    "persist_result": False,
}


@task(name="make-shard", task_run_name="{home}-{shard}", **RETRIED)
@told
def make_shard_task(out: str, home: str, shard: int, isolated: bool) -> None:
    """Make one shard, in a child process where its libraries need one."""
    (run_in_child if isolated else make_shard)(out, home, shard)


@flow(name="build-shards", flow_run_name=RANGE_NAME, persist_result=False)
@told
def build_shards(
    out: str, subset: str, first: int = 0, last: int | None = None, workers: int = 0, runner: Runner = "threads"
) -> int:
    """Make the shards ``first`` to ``last`` of a planned stage that are not done; returns how many were made.

    One shard that fails takes no other down; the run fails at the end, and running it again resumes.

    Args:
        subset: home of the stage below ``out``: the name of a subset, or ``_stages/NAME``.
        last: inclusive; None: to the end.
    """
    store, host = Store(out), socket.gethostname()
    try:
        planned = len(read_planned(store, subset))
    except FileNotFoundError as error:
        raise BuildFailed(
            f"{store.root}/{subset}: {host} sees no plan there; OUT must be a folder that all workers share, or a URL"
        ) from error
    forget_workers()
    job, name = job_of(store, subset)
    worker = job.worker(name)
    if not (todo := job.state(name, range(first, planned if last is None else min(last + 1, planned))).todo):
        return 0
    with naming(f"on {host}"):
        job.check_inputs(("media", "models"), [name])
        if runner in ("threads", "processes"):
            job.check_devices([name])
    device, visible = worker.machine.get("device", "cpu"), os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    get_run_logger().info("%s: %d shards to make on %s, device %s, visible: %s", name, len(todo), host, device, visible)
    try:
        with TagsContext(current_tags=set()), task_runner(runner, workers or worker.source.shards_at_a_time) as pool:
            given = {"out": out, "home": subset, "isolated": worker.isolated}
            futures = {shard: pool.submit(make_shard_task, {**given, "shard": shard}) for shard in todo}
            wait([*futures.values()])
    finally:
        close_children()
    states = {shard: future.state for shard, future in futures.items()}
    failures = {shard: str(state.message) for shard, state in states.items() if not state.is_completed()}
    if failures:
        raise BuildFailed(failed_shards(name, failures, len(todo)))
    return len(todo)
