"""Handing work to pools: for each piece of it, such as a range of shards, a run of a deployment."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import httpx
from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType, TaskRun, WorkPoolStatus
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from prefect.futures import PrefectFuture, wait
from prefect.runtime import flow_run as current_run
from prefect.states import Cancelling, Crashed, Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed
from twinset.flows.artifacts import cosmetic
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.run_here import Runner
from twinset.stages.status import StageState

FIRST_POLL_SECONDS, POLL_SECONDS = 0.5, 5.0  # short runs are seen to end at once
UNREADY: dict[WorkPoolStatus | None, tuple[str, str]] = {
    WorkPoolStatus.PAUSED: ("is paused", "prefect work-pool resume "),
    WorkPoolStatus.NOT_READY: ("has no worker", "prefect worker start --limit 1 --pool "),
}
RANGE_NAME = "{subset} {first}-{last} in {out}"
RUNS_AT_A_TIME = 256  # of a stage; the others wait here
RESUBMISSIONS = 3  # of a piece whose runs crash
OUTAGE_SECONDS, OUTAGES = 10, 360  # between attempts to reach the server: an hour
#: Exit codes of a process that was killed, as the kernel does where memory runs out: here, and in a container.
KILLED = ("status code: -9", "status code: 137")


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A run of the deployment ``FLOW/POOL``, named as its flow names it.

    identity: what decides that an earlier run is of the same work, as JSON. labels: tags beside those of `labels_of`.
    frugal: parameters for another try after a run's process was killed, as for lack of memory.
    """

    name: str
    flow: str
    pool: str
    parameters: Mapping[str, Any]
    identity: Any
    labels: Sequence[str]
    frugal: Mapping[str, Any] = field(default_factory=dict)

    @property
    def deployment(self) -> str:
        return f"{self.flow}/{self.pool}"


def shards_piece(
    job: Job, name: str, state: StageState, first: int, last: int, workers: int, runner: Runner | None
) -> Piece:
    """The run that makes shards ``first`` to ``last`` of a stage.

    workers, runner: what is not asked for is the deployment's to say.
    """
    out, home, pool = job.store.root, state.home, job.recipe[name].pool
    parameters: dict[str, Any] = {"out": out, "subset": home, "first": first, "last": last}
    identity = {**parameters, "pool": pool, "content": state.stage.content, "plan": state.stage.plan}
    run_name = RANGE_NAME.format(**parameters)
    asked = {"workers": workers, "runner": runner}
    parameters |= {key: value for key, value in asked.items() if value}
    return Piece(run_name, "build-shards", pool, parameters, identity, [job.recipe.name, name], {"workers": 1})


def labels_of(out: str) -> list[str]:
    """Tags that all runs carry which write below ``out``; the shipped automations look for the first."""
    return ["twinset", f"out={Store(out).root}"]


def label_run(out: str, *labels: str) -> None:
    """Give this flow run the tags of ``out`` and these, beside those of its deployment."""
    here, there = current_run.get_id(), {*current_run.get_tags()}
    if here is not None and (wanted := {*labels_of(out), *labels} - there):
        with cosmetic(), get_client(sync_client=True) as client:
            client.update_flow_run(UUID(here), tags=sorted(there | wanted))


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

    Warns of pools that are paused or have no worker. Raises `BuildFailed` naming what is missing, with the remedy.
    """
    logger, missing = get_run_logger(), []
    with get_client(sync_client=True) as client:
        for name in sorted(set(deployments)):
            try:
                pool = client.read_deployment_by_name(name).work_pool_name
            except ObjectNotFound:
                missing.append(f"Prefect has no deployment {name}")
                continue
            if pool is None:
                missing.append(f"the work pool of Prefect's deployment {name} was deleted")
            elif (status := client.read_work_pool(pool).status) in UNREADY:
                problem, remedy = UNREADY[status]
                logger.warning(f"work pool {pool} {problem}, so its runs wait; run {remedy}{pool}")
    if missing:
        raise BuildFailed(
            f"{', '.join(missing)}; run prefect work-pool create POOL --type process for each pool that prefect "
            "work-pool ls does not show and, from the checkout, prefect --no-prompt deploy --all, which stops at the "
            "first pool that is missing; then start the same run again"
        )


def is_outage(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether a task failed because Prefect's server did not answer, or not as it should."""
    error = state.result(raise_on_failure=False)
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError)


def run_pieces(pieces: Sequence[Piece]) -> None:
    """Have all pieces done and wait; raises `BuildFailed` naming those whose runs failed."""
    runner: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=RUNS_AT_A_TIME)
    with runner as pool:
        futures: list[PrefectFuture[Any]] = [pool.submit(run_piece, {"piece": piece}) for piece in pieces]
        wait(futures)
    if failures := [str(future.state.message) for future in futures if not future.state.is_completed()]:
        raise BuildFailed("run the same deployment again to resume:\n" + "\n".join(failures))


@task(
    name="piece",
    task_run_name="{piece.name}",
    retries=OUTAGES,
    retry_delay_seconds=OUTAGE_SECONDS,
    retry_condition_fn=is_outage,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def run_piece(piece: Piece) -> State[Any] | None:
    """Have a piece done by a run of its deployment, a subflow of this one; a state of failure where it is not done.

    A run of the same work that has not ended is waited for, as when the parent died and was retried. A run that crashed
    (its machine or process died) is replaced a few times; one that failed is not: its errors are the work's.
    """
    work = f"work={digest(piece.identity)[:16]}"
    parameters = dict(piece.parameters)
    with get_client(sync_client=True) as client:
        for _ in range(RESUBMISSIONS + 1):
            run = next(iter(_live_runs(client, ["twinset", work])), None) or _submit(piece, parameters, work)
            state = _end_of(client, run)
            if state.is_completed():
                return None
            problem = f"{piece.name}: {state.name}: {state.message}"
            if not state.is_crashed():
                break
            get_run_logger().warning("%s; it is made again", problem)
            if any(code in (state.message or "") for code in KILLED):
                parameters |= piece.frugal
    return Failed(message=problem)


#: Prefect counts a run's subflows without a lock: two threads would get one number.
_submitting = threading.Lock()


def _submit(piece: Piece, parameters: dict[str, Any], work: str) -> FlowRun:
    with _submitting:
        run: FlowRun = run_deployment(  # type: ignore[assignment]
            piece.deployment,
            parameters=parameters,
            flow_run_name=piece.name,
            tags=[*labels_of(parameters["out"]), *piece.labels, work],
            idempotency_key=str(uuid4()),  # of a request whose answer is lost, and which is sent again
            timeout=0,
        )
    return run


def _live_runs(client: SyncPrefectClient, labels: list[str]) -> list[FlowRun]:
    """Flow runs that carry all these tags, have not ended and are not being cancelled; 200 at most."""
    ended = [*TERMINAL_STATES, StateType.CANCELLING]
    state = FlowRunFilterState(type=FlowRunFilterStateType(not_any_=ended))
    return client.read_flow_runs(flow_run_filter=FlowRunFilter(tags=FlowRunFilterTags(all_=labels), state=state))


def _end_of(client: SyncPrefectClient, run: FlowRun) -> State[Any]:
    """The final state of a run, once it has one."""
    pause = FIRST_POLL_SECONDS
    while True:
        try:
            state = client.read_flow_run(run.id).state
        except ObjectNotFound:
            return Crashed(message="the run was deleted")
        if state is not None and state.is_final():
            return state
        time.sleep(pause)
        pause = min(1.5 * pause, POLL_SECONDS)
