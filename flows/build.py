"""The flows ``build-eqben``, ``build-genecis``, ``build-trohn`` and ``build-bivlc``: one body, a name a benchmark.

Each stage is a task that waits for those it reads, so Prefect runs the recipe's DAG; shards are made by `build_shards`,
here or in the work pool that the stage asks for.
"""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

from prefect import flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.context import TagsContext
from prefect.futures import PrefectFuture, wait
from prefect.task_runners import ThreadPoolTaskRunner
from pydantic import NonNegativeInt, PositiveInt

from twinset.contracts.errors import BuildFailed, DecisionsMissing
from twinset.contracts.recipe import Recipe, load_recipe
from twinset.flows.artifacts import Artifacts, cosmetic, describe_build, told
from twinset.flows.build_shards import SHARDS_A_RUN, build_shards
from twinset.flows.pools import Runner, cancel_parts, check_pools, labels_of, make_in_pools
from twinset.shards.storage.store import Store
from twinset.stages.build import build_stage, failure_of
from twinset.stages.dataset import finish_dataset
from twinset.stages.finish import MakeShards
from twinset.stages.job import Job, StageState

#: The build whose tasks run, and what makes its shards; in the context of the tasks, so that nothing pickles it.
_build: ContextVar[tuple[Job, MakeShards]] = ContextVar("build")


@told
def build_one_stage(name: str) -> None:
    """Plan a stage, have its shards made and write its index."""
    job, make_shards = _build.get()
    build_stage(job, name, make_shards, Artifacts())


@told
def finish_all(unfinished: Sequence[str] = ()) -> dict[str, Any]:
    """As `stages.dataset.finish_dataset`. unfinished: stages that wait for people, and those that read them."""
    job, make_shards = _build.get()
    return finish_dataset(job, make_shards, Artifacts(), unfinished)


stage_task = task(name="stage", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)(build_one_stage)
finish_task = task(name="finish", task_run_name="finish", cache_policy=NO_CACHE, persist_result=False)(finish_all)


@told
def build_recipe(
    recipe: str,
    out: str,
    only: list[str] | None = None,
    settings: list[str] | None = None,
    workers: NonNegativeInt = 0,
    runner: Runner | None = None,
    pools: bool = False,
    shards_a_run: PositiveInt = 100,
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
    """
    loaded = load_recipe(recipe, settings or ()).only(only or ())
    return build_loaded(loaded, out, workers, runner, pools, shards_a_run)


@told
def build_loaded(
    recipe: Recipe, out: str, workers: int, runner: Runner | None, pools: bool = False, shards_a_run: int = 100
) -> dict[str, Any]:
    """As `build_recipe`, of a recipe that is loaded already; called within a flow run."""
    job = Job(recipe, Store(out))
    job.check_inputs(("annotations", "media", "models"))
    make_shards: MakeShards = partial(_make_here, workers=workers, runner=runner or "threads")
    if pools:
        check_pools(f"build-shards/{recipe[name].pool}" for name in recipe.all)
        make_shards = partial(make_in_pools, workers=workers, runner=runner, shards_a_run=shards_a_run)
    else:
        job.check_devices()
    _build.set((job, make_shards))
    # For each tag of a task the server is asked for a slot, for seconds at times: the subflows alone have tags.
    with TagsContext(current_tags=set()), job.store.for_one_build():
        try:
            return _run(job)
        finally:
            with cosmetic():
                describe_build(job)


def _run(job: Job) -> dict[str, Any]:
    """Submit all stages, each after those that it reads, and what needs all of them."""
    futures: dict[str, PrefectFuture[Any]] = {}
    for name in job.recipe.all:
        reads = [futures[earlier] for earlier in job.recipe.reads(name)]
        futures[name] = stage_task.submit(name, wait_for=reads)  # type: ignore[call-overload]
    wait([*futures.values()])
    unfinished = [name for name, future in futures.items() if not future.state.is_completed()]
    # What is not final reads a stage that failed, and never ran.
    ended = [name for name in unfinished if futures[name].state.is_final()]
    failures = {name: futures[name].state.result(raise_on_failure=False) for name in ended}
    waits = [error for error in failures.values() if isinstance(error, DecisionsMissing)]
    if len(waits) < len(failures):
        raise failure_of(failures, [name for name in unfinished if name not in ended])
    # By its state, so that what it fails of is raised: the message of this run, which notifications tell.
    made = finish_task(unfinished, return_state=True).result()
    if waits:
        raise DecisionsMissing.of_all(waits)
    return made


#: Stages run side by side, and a process connects to one Ray at a time.
_one_ray = threading.Lock()


def _make_here(job: Job, name: str, state: StageState, workers: int, runner: Runner) -> list[str]:
    """Make what is not done in subflows of this run; returns what failed."""
    failures = []
    for start in range(0, len(state.todo), SHARDS_A_RUN):
        part = state.todo[start : start + SHARDS_A_RUN]
        try:
            with tags(*labels_of(job.store.root), job.recipe.name), _one_ray if runner == "ray" else nullcontext():
                build_shards(job.store.root, state.home, part[0], part[-1], workers, runner)
        except BuildFailed as error:
            failures.append(str(error))
    return failures


STAGE_RUNNER: Any = ThreadPoolTaskRunner(max_workers=16)
build_eqben, build_genecis, build_trohn, build_bivlc = FLOWS = tuple(
    flow(
        name=f"build-{paper}",
        flow_run_name="{recipe} in {out}",
        persist_result=False,
        task_runner=STAGE_RUNNER,
        on_cancellation=[cancel_parts],
    )(build_recipe)
    for paper in ("eqben", "genecis", "trohn", "bivlc")
)
