"""Handing work to pools: one run of a deployment a piece, such as a range of shards, adopted when it already exists."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast
from uuid import UUID

import httpx
from prefect import get_run_logger
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, StateType, WorkPoolStatus
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.runtime import flow_run
from prefect.states import Crashed

from twinset.manifests.canonical import digest
from twinset.manifests.errors import BuildFailed
from twinset.stages.run_here import Runner

FIRST_POLL_SECONDS, POLL_SECONDS = 0.5, 5.0  # short runs are seen to end at once
LOOK_SECONDS = 300.0  # between looks at pools that runs wait for
UNREADY: dict[WorkPoolStatus | None, tuple[str, str]] = {
    WorkPoolStatus.PAUSED: ("is paused", "prefect work-pool resume "),
    WorkPoolStatus.NOT_READY: ("has no worker", "prefect worker start --limit 1 --pool "),
}
PENDING_SECONDS = 600.0  # a worker killed while it submits leaves its run Pending for ever
RESUBMISSIONS = 3
OLD_RUNS = 1000
RUNS_A_REQUEST = 200  # the most that Prefect's server returns
OUTAGES = 720  # polls without an answer: an hour


@dataclass(frozen=True, slots=True)
class Range:
    """Shards ``first`` to ``last`` of a subset, for the workers of a pool.

    content, plan: digests of the subset's stage and plan. Ranges must be cut the same way whatever is done already.
    """

    out: str
    subset: str
    pool: str
    content: str
    plan: str
    first: int
    last: int

    @property
    def name(self) -> str:
        return f"{self.subset} shards {self.first}-{self.last}"

    def piece(self, workers: int, runner: Runner | None) -> Piece:
        """The run that makes it. workers, runner: what is not asked for is the deployment's to say."""
        parameters: dict[str, Any] = {"out": self.out, "subset": self.subset, "first": self.first, "last": self.last}
        asked = {"workers": workers, "runner": runner}
        parameters |= {name: value for name, value in asked.items() if value}
        return Piece(self.name, "build-shards", self.pool, parameters, asdict(self), self.subset)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A run of the deployment ``FLOW/POOL``.

    identity: what decides that an earlier run is of the same work, as JSON. tag: of the run, beside its parent's name.
    """

    name: str
    flow: str
    pool: str
    parameters: Mapping[str, Any]
    identity: Any
    tag: str

    @property
    def deployment(self) -> str:
        return f"{self.flow}/{self.pool}"


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


def run_pieces(pieces: Sequence[Piece]) -> None:
    """Have all pieces done and wait; raises `BuildFailed` naming those whose runs failed.

    A crashed run (its machine died) is submitted again a few times; a failed one is not: its errors are the work's.
    """
    logger = get_run_logger()
    check_pools(part.deployment for part in pieces)
    looked, pause = time.monotonic(), FIRST_POLL_SECONDS
    waiting = {part: _submit(part) for part in pieces}
    tries = dict.fromkeys(pieces, 0)
    failures: list[str] = []
    outages = 0
    with get_client(sync_client=True) as client:
        while waiting:
            try:
                runs = _read(client, [run.id for run in waiting.values()])
                if time.monotonic() - looked > LOOK_SECONDS:
                    looked = time.monotonic()
                    check_pools(part.deployment for part in waiting)
                outages = 0
            except httpx.HTTPError as error:
                # The server may be restarting; the runs that it knows go on.
                outages += 1
                if outages > OUTAGES:
                    raise
                logger.warning("Prefect's server does not answer (%s); asking again", error)
                time.sleep(POLL_SECONDS)
                continue
            for part, run in list(waiting.items()):
                now = runs.get(run.id)
                state = now.state if now is not None else Crashed(message="it was deleted")
                if state is None:
                    continue
                if not state.is_final():
                    if state.type == StateType.PENDING and time.time() - state.timestamp.timestamp() > PENDING_SECONDS:
                        client.set_flow_run_state(run.id, Crashed(message="stuck in Pending"), force=True)
                    continue
                if state.is_completed():
                    del waiting[part]
                elif state.is_crashed() and tries[part] < RESUBMISSIONS:
                    tries[part] += 1
                    logger.warning("%s: run %s crashed; submitting again", part.name, run.name)
                    check_pools([part.deployment])
                    waiting[part] = _submit(part)
                else:
                    del waiting[part]
                    failures.append(f"{part.name}: run {run.name} is {state.name}: {state.message}")
            if waiting:
                time.sleep(pause)
                pause = min(1.5 * pause, POLL_SECONDS)
    if failures:
        raise BuildFailed("run the same deployment again to resume:\n" + "\n".join(failures))


def _read(client: SyncPrefectClient, ids: Sequence[UUID]) -> dict[UUID, FlowRun]:
    """Flow runs by id, many in one request; without those that were deleted."""
    found: list[FlowRun] = []
    for first in range(0, len(ids), RUNS_A_REQUEST):
        wanted = FlowRunFilterId(any_=list(ids[first : first + RUNS_A_REQUEST]))
        found += client.read_flow_runs(flow_run_filter=FlowRunFilter(id=wanted), limit=RUNS_A_REQUEST)
    return {run.id: run for run in found}


def _submit(part: Piece) -> FlowRun:
    """The live run of a piece: an earlier one when it is still going, else a new one.

    The key is of what is done, so that a parent that died and is retried adopts its children. Ended runs keep their
    key for ever, hence the count behind it.
    """
    for number in range(OLD_RUNS):
        run = cast(
            FlowRun,
            run_deployment(
                part.deployment,
                parameters=dict(part.parameters),
                timeout=0,
                # Not as a subflow: each look at an ended run would leave a task behind in the parent.
                as_subflow=False,
                tags=[flow_run.flow_name or part.flow, part.tag],
                idempotency_key=digest([part.identity, number]),
            ),
        )
        if run.state is None or not run.state.is_final():
            return run
    raise BuildFailed(f"{part.name}: {OLD_RUNS} runs have ended without finishing it; look at their logs in Prefect")
