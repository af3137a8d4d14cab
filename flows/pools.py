"""Shards in work pools: for each range of them a run of the deployment ``build-shards/POOL``."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID, uuid4

import httpx
from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas import filters
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType, TaskRun
from prefect.context import FlowRunContext
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from prefect.futures import PrefectFuture, wait
from prefect.states import Cancelling, Crashed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages.job import Job, StageState

Runner = Literal["threads", "processes", "ray", "dask"]
POLL_SECONDS = 2.0
RANGE_NAME = "{subset} {first}-{last} in {out}"
RUNS_AT_A_TIME = 256  # of a stage; the others wait here
RESUBMISSIONS = 3  # of a range whose runs crash
KILLED = ("status code: -9", "status code: 137")  # as by the kernel where memory runs out: here, and in a container


def labels_of(out: str) -> list[str]:
    """Tags that all runs carry which write below ``out``; the shipped automations look for the first."""
    return ["twinset", f"out={Store(out).root}"]


def cancel_parts(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Cancel what a cancelled run has handed out, and the subflows that ended with its process."""
    asked, labels = set[UUID](), labels_of(flow_run.parameters["out"])
    with get_client(sync_client=True) as client:
        while parts := [part for part in _live_runs(client, labels) if part.id not in asked]:
            for part in parts:
                asked.add(part.id)
                if part.parent_task_run_id is not None:  # else it is another build's, begun into OUT meanwhile
                    client.set_flow_run_state(part.id, Cancelling(message=f"{flow_run.name} was cancelled"))


def check_pools(deployments: Iterable[str]) -> None:
    """Look for deployments, ``FLOW/POOL`` each, and their work pools before runs wait for them.

    Raises `BuildFailed` naming what is missing, with the remedy.
    """
    missing = []
    with get_client(sync_client=True) as client:
        for name in sorted(set(deployments)):
            try:
                client.read_work_pool(client.read_deployment_by_name(name).work_pool_name or "-")  # it was deleted
            except ObjectNotFound:
                missing.append(name)
    if missing:
        raise BuildFailed(
            f"Prefect has no deployment {', '.join(missing)}, or no work pool of it; run bash docker/deploy.sh in the "
            "checkout, which makes them, and then this deployment again"
        )


def is_outage(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether a task failed because Prefect's server did not answer; some of its requests are sent once."""
    return isinstance(state.result(raise_on_failure=False), httpx.TransportError)


def make_in_pools(
    job: Job, name: str, state: StageState, workers: int, runner: Runner | None, shards_a_run: int
) -> list[str]:
    """Have the shards of a stage that are not done made by runs of ``build-shards/POOL``; returns what failed.

    workers, runner: what is not asked for is the deployment's to say.
    """
    pool = job.recipe[name].pool
    get_run_logger().info("%s: %d of %d shards to make in pool %s", name, len(state.todo), len(state.planned), pool)
    asked = {key: value for key, value in (("workers", workers), ("runner", runner)) if value}
    threads: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=RUNS_AT_A_TIME)
    with threads as submitted:
        futures: list[PrefectFuture[Any]] = []
        for first in sorted({number // shards_a_run * shards_a_run for number in state.todo}):
            last = min(first + shards_a_run, len(state.planned)) - 1  # cut the same way whatever is done already
            shards = {"out": job.store.root, "subset": state.home, "first": first, "last": last}
            work = digest({**shards, "pool": pool, "content": state.stage.content, "plan": state.stage.plan})
            labels = [*labels_of(job.store.root), job.recipe.name, name, f"work={work[:16]}"]
            given = {"pool": pool, "shards": shards, "asked": asked, "labels": labels}
            futures.append(submitted.submit(make_range, given))
        wait(futures)
    failures = [str(future.state.message) for future in futures if not future.state.is_completed()]
    return ["run the same deployment again to resume:", *failures] if failures else []


@task(
    name="range",
    task_run_name="{shards[subset]} {shards[first]}-{shards[last]}",
    retries=360,  # while the server is away: for an hour
    retry_delay_seconds=10,
    retry_condition_fn=is_outage,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def make_range(
    pool: str, shards: Mapping[str, Any], asked: Mapping[str, Any], labels: Sequence[str]
) -> State[Any] | None:
    """Have a range of shards made by a subflow of this run; a state of failure where it is not made.

    A run of the same work that has not ended is waited for, as when the parent died and was retried. A run that crashed
    (its machine or process died) is replaced a few times; one that failed is not: its errors are the work's. shards,
    asked: parameters of the run. labels: its tags, of which the last names the work.
    """
    parameters, name = {**shards, **asked}, RANGE_NAME.format(**shards)
    with get_client(sync_client=True) as client:
        for _ in range(RESUBMISSIONS + 1):
            run = next(iter(_live_runs(client, ["twinset", labels[-1]])), None) or _submit(
                pool, name, parameters, labels
            )
            state = _end_of(client, run)
            if state.is_completed():
                return None
            problem = f"{name}: {state.name}: {state.message}"
            if not state.is_crashed():
                break
            get_run_logger().warning("%s; it is made again", problem)
            if any(code in (state.message or "") for code in KILLED):
                parameters["workers"] = 1  # perhaps memory ran out
    return Failed(message=problem)


#: Prefect counts a run's subflows without a lock: two threads would get one number.
_submitting = threading.Lock()


def _submit(pool: str, name: str, parameters: dict[str, Any], labels: Sequence[str]) -> FlowRun:
    with _submitting:
        run: FlowRun = run_deployment(  # type: ignore[assignment]
            f"build-shards/{pool}",
            parameters=parameters,
            flow_run_name=name,
            tags=labels,
            work_queue_name=_queue(),
            idempotency_key=str(uuid4()),  # of a request whose answer is lost, and which is sent again
            timeout=0,
        )
    return run


def _queue() -> str | None:
    """The queue that this build came from, such as one of urgent work; None for those of the deployments."""
    context = FlowRunContext.get()
    name = context.flow_run.work_queue_name if context and context.flow_run else None
    return None if name == "default" else name


def _live_runs(client: SyncPrefectClient, labels: list[str]) -> list[FlowRun]:
    """Flow runs that carry all these tags, have not ended and are not being cancelled; 200 at most."""
    live = filters.FlowRunFilterStateType(not_any_=[*TERMINAL_STATES, StateType.CANCELLING])
    tagged, state = filters.FlowRunFilterTags(all_=labels), filters.FlowRunFilterState(type=live)
    return client.read_flow_runs(flow_run_filter=filters.FlowRunFilter(tags=tagged, state=state))


def _end_of(client: SyncPrefectClient, run: FlowRun) -> State[Any]:
    """The final state of a run, once it has one."""
    while True:
        try:
            state = client.read_flow_run(run.id).state
        except ObjectNotFound:
            return Crashed(message="the run was deleted")
        if state is not None and state.is_final():
            return state
        time.sleep(POLL_SECONDS)
