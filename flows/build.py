"""The flows ``build-eqben``, ``build-genecis``, ``build-trohn`` and ``build-bivlc``: one body, a name a benchmark.

Each stage is a task that waits for those it reads, so Prefect runs the recipe's DAG; shards are made by `build_shards`,
here or in the work pool that the stage asks for.
"""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from prefect import flow, get_run_logger, suspend_flow_run, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.runtime import deployment, flow_run
from prefect.states import Failed
from prefect.task_runners import ThreadPoolTaskRunner

from twinset.contracts.errors import BuildFailed, DecisionsMissing, TwinsetError
from twinset.contracts.recipe import Recipe, load_recipe
from twinset.flows.artifacts import Artifacts, cosmetic, describe_build
from twinset.flows.build_shards import SHARDS_A_RUN, build_shards
from twinset.flows.login import warn_without_login
from twinset.flows.pools import cancel_parts, check_pools, label_run, labels_of, run_pieces, shards_piece
from twinset.flows.resume import WAITING, WaitingRun, waiting_run
from twinset.shards.storage.store import Store
from twinset.stages.build import RunShards, build_stage, finish, finish_ready
from twinset.stages.job import Job, check_devices, check_inputs
from twinset.stages.run_here import Runner
from twinset.stages.status import StageState

DAY = 86_400  # seconds


def no_longer_waiting(store: Store) -> None:
    """Remove the record that this very run waits, where there is one: it begins or goes on."""
    waiting, here = waiting_run(store), flow_run.get_id()
    if waiting is not None and str(waiting.flow_run_id) == here:
        store.remove(WAITING)


def suspend_until_decided(job: Job, missing: DecisionsMissing, days: float) -> None:
    """Suspend this flow run until somebody resumes it (`flows.resume`); it then begins again.

    Returns at once where people have decided meanwhile.

    Args:
        job: of the build, whose snapshot of the answers is older than this moment.
        missing: the stages that wait.
        days: after which the run fails unless it was resumed.

    Raises:
        DecisionsMissing: there is no deployment that would start this run again.
    """
    here = flow_run.get_id()
    if here is None or deployment.get_id() is None:
        raise missing
    waiting = WaitingRun(flow_run_id=UUID(here), stages=tuple(missing.missing))
    job.store.write(WAITING, waiting.to_bytes())
    # Whoever answers from now on finds the record; an answer of just before is seen here.
    now = Job(job.recipe, job.store)
    if any(now.worker(name).generator.waiting() is None for name in missing.missing):
        no_longer_waiting(job.store)
        return
    get_run_logger().warning("%s", missing)
    # A key of its own: the run may be suspended again, for another stage.
    suspend_flow_run(timeout=round(days * DAY), key=str(uuid4()))


@dataclass(frozen=True, slots=True)
class Build:
    """What the tasks of a build share. waits: why stages wait for people, by name."""

    job: Job
    run: RunShards
    progress: Artifacts
    waits: dict[str, DecisionsMissing] = field(default_factory=dict)


#: Set by the flow, copied into the threads of its tasks. Ray and Dask pickle the task
#: that submits shards, with its parameters and, unless it can be imported by name, its function: neither may hold any
#: of this.
_build: ContextVar[Build] = ContextVar("build")


def build_one_stage(name: str) -> str | State[Any]:
    """Plan a stage, have its shards made and write its index; a state of failure where it waits for people."""
    build = _build.get()
    try:
        build_stage(build.job, name, build.run, build.progress)
    except DecisionsMissing as error:
        # Returned, since Prefect logs the traceback of what is raised, and this is no mistake.
        build.waits[name] = error
        return Failed(name="Waiting", message=str(error))
    return name


def finish_all(unfinished: Sequence[str] = ()) -> dict[str, Any]:
    """Duplicates, missing media and the dataset's descriptions, once all stages are done.

    unfinished: the stages that wait for people, and those that read them; the others are described.
    """
    build = _build.get()
    if unfinished:
        finish_ready(build.job, build.run, build.progress, unfinished)
        return {}
    return finish(build.job, build.run, build.progress)


stage_task = task(name="stage", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)(build_one_stage)
finish_task = task(name="finish", task_run_name="finish", cache_policy=NO_CACHE, persist_result=False)(finish_all)


def build_recipe(
    recipe: str,
    out: str,
    only: list[str] | None = None,
    settings: list[str] | None = None,
    workers: int = 0,
    runner: Runner | None = None,
    pools: bool = False,
    shards_a_run: int = 100,
    wait_days: float = 365.0,
) -> dict[str, Any]:
    """Build the subsets of a recipe and the stages that they read; whatever is done already stays.

    Args:
        recipe: name of a shipped recipe or path of a YAML file.
        out: folder or fsspec URL.
        only: subsets; all by default.
        settings: overrides ``KEY.PATH=VALUE``.
        workers: shards at a time; 0: one a core, or as the pool's deployment says.
        runner: threads by default.
        pools: whether shards go to the deployments ``build-shards/POOL`` of each stage's pool, or are made here.
        shards_a_run: shards of one flow run in a pool.
        wait_days: how long the run stays suspended for people's decisions, after which it fails.

    Returns:
        ``{"subsets": {NAME: counts}}``.

    Raises:
        WrongUse: before any work.
        BuildFailed: after all that could be done was done.
        DecisionsMissing: as BuildFailed, where people have not decided and no deployment could resume the run.
    """
    label_run(out)
    loaded = load_recipe(recipe, settings or ()).only(only or ())
    return build_loaded(loaded, out, workers, runner, pools, shards_a_run, wait_days)


def build_loaded(
    recipe: Recipe,
    out: str,
    workers: int,
    runner: Runner | None,
    pools: bool,
    shards_a_run: int,
    wait_days: float = 365.0,
) -> dict[str, Any]:
    """As `build_recipe`, of a recipe that is loaded already; called within a flow run."""
    warn_without_login()
    label_run(out, recipe.name)
    check_inputs(recipe, ("annotations", "media", "models"))
    if pools:
        check_pools(f"build-shards/{recipe[name].pool}" for name in recipe.all)
    else:
        check_devices(recipe)
    store, progress = Store(out), Artifacts()
    no_longer_waiting(store)
    run: RunShards = (
        partial(_run_in_pools, workers=workers, runner=runner, shards_a_run=shards_a_run)
        if pools
        else partial(_run_here, workers=workers, runner=runner or "threads")
    )
    while True:
        build = Build(Job(recipe, store), run, progress)
        _build.set(build)
        with tags(*labels_of(out), recipe.name), store.for_one_build():
            counts = _run(build)
        if not build.waits:
            return counts
        waits = [build.waits[name] for name in recipe.all if name in build.waits]
        suspend_until_decided(build.job, DecisionsMissing.of_all(waits), wait_days)


def _run(build: Build) -> dict[str, Any]:
    """Submit all stages, each after those that it reads, and what needs all of them."""
    job, waits = build.job, build.waits
    futures: dict[str, PrefectFuture[Any]] = {}
    for name in job.recipe.all:
        reads = [futures[one] for one in job.recipe.reads(name)]
        futures[name] = stage_task.submit(name, wait_for=reads)  # type: ignore[call-overload]
    problems = {name: problem for name, future in futures.items() if (problem := _problem(future))}
    if problems.keys() - waits.keys():
        raise BuildFailed("\n".join(problems.values()))
    if waits:
        return finish_task([name for name, future in futures.items() if not future.state.is_completed()])
    counts: dict[str, Any] = finish_task()
    with cosmetic():
        describe_build(job)
    return counts


def _run_name() -> str:
    given = flow_run.get_parameters()
    return f"{Path(given['recipe']).stem} in {given['out']}"


STAGES_AT_A_TIME: Any = ThreadPoolTaskRunner(max_workers=16)
build_eqben, build_genecis, build_trohn, build_bivlc = FLOWS = tuple(
    flow(
        name=f"build-{paper}",
        flow_run_name=_run_name,
        persist_result=False,
        task_runner=STAGES_AT_A_TIME,
        on_cancellation=[cancel_parts],
    )(build_recipe)
    for paper in ("eqben", "genecis", "trohn", "bivlc")
)


def _problem(future: PrefectFuture[Any]) -> str:
    future.wait()
    state = future.state
    if state.is_completed() or not state.is_final():
        return ""  # what is not final reads a stage that failed, and never ran
    error = state.result(raise_on_failure=False)
    return str(error) if isinstance(error, TwinsetError | OSError) else f"{state.name}: {state.message}"


#: Stages run side by side, and a process connects to one Ray at a time.
_one_ray = threading.Lock()


def _run_here(job: Job, name: str, state: StageState, workers: int, runner: Runner) -> list[str]:
    """Make what is not done in subflows of this run; returns what failed."""
    failures = []
    for start in range(0, len(state.todo), SHARDS_A_RUN):
        part = state.todo[start : start + SHARDS_A_RUN]
        try:
            with _one_ray if runner == "ray" else nullcontext():
                build_shards(job.store.root, state.home, part[0], part[-1], workers, runner)
        except BuildFailed as error:
            failures.append(str(error))
    return failures


def _run_in_pools(
    job: Job, name: str, state: StageState, workers: int, runner: Runner | None, shards_a_run: int
) -> list[str]:
    """Make what is not done in the work pool that the stage asks for; returns what failed."""
    pieces = []
    for first in sorted({number // shards_a_run * shards_a_run for number in state.todo}):
        last = min(first + shards_a_run, len(state.planned)) - 1  # cut the same way whatever is done already
        pieces.append(shards_piece(job, name, state, first, last, workers, runner))
    pool = job.recipe[name].pool
    get_run_logger().info("%s: %d of %d shards to make in pool %s", name, len(state.todo), len(state.planned), pool)
    try:
        run_pieces(pieces)
    except BuildFailed as error:
        return [str(error)]
    return []
