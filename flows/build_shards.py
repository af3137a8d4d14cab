"""The flow ``build-shards``: makes a range of the shards of one subset, those that have no valid receipt yet."""

from __future__ import annotations

import errno
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from flows.reporting import ProgressArtifact, reporter
from flows.runners import Runner, task_runner
from manifests.errors import BuildFailed
from manifests.source_settings import Source, StableDiffusion
from shards.storage.store import Store
from stages.child_processes import close_children, make_one_isolated
from stages.prepare import asked_recipe, make_one, needs_process, state_of

SHARDS_A_RUN = 1000  # Prefect loses task records of much larger runs
RETRIES = 3
HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR)


def is_io_trouble(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Retry when the network or a disk hiccuped; a full disk or a wrong input will not mend by waiting."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, OSError) and error.errno not in HOPELESS


@task(
    name="make-shard",
    task_run_name="{subset}-{shard}",
    retries=RETRIES,
    retry_delay_seconds=exponential_backoff(backoff_factor=1),
    retry_condition_fn=is_io_trouble,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def make_shard_task(out: str, subset: str, shard: int, isolated: bool) -> int:
    """Make one shard; returns how many samples it keeps."""
    receipt = (make_one_isolated if isolated else make_one)(out, subset, shard)
    return int(receipt["kept"])


@flow(name="build-shards", flow_run_name="{subset}-{first}-{last}", persist_result=False)
def build_shards(
    out: str, subset: str, first: int = 0, last: int | None = None, workers: int = 0, runner: Runner = "threads"
) -> int:
    """Make the shards ``first`` to ``last`` (inclusive; None: to the end) of a planned subset that are not done.

    One shard that fails takes no other down; the run fails at the end, and running it again resumes. Returns how many
    shards were made.
    """
    store = Store(out)
    recipe = asked_recipe(store, subset)
    state = state_of(store, recipe, subset, lambda number: first <= number and (last is None or number <= last))
    todo = state.todo
    if not todo:
        return 0
    if len(todo) > SHARDS_A_RUN:
        raise BuildFailed(f"{len(todo)} shards in one run; ask for at most {SHARDS_A_RUN} (first, last)")
    isolated = needs_process(recipe, subset)
    bar = ProgressArtifact(f"{subset}-shards", len(todo) + len(state.done), len(state.done))
    failures: list[str] = []
    pool = task_runner(runner, workers or _shards_at_a_time(recipe.subsets[subset].source))
    try:
        with pool:
            given = {"out": out, "subset": subset, "isolated": isolated}
            futures = [(shard, pool.submit(make_shard_task, {**given, "shard": shard})) for shard in todo]
            for shard, future in futures:
                future.wait()
                if future.state.is_completed():
                    bar.advance()
                    reporter().advance(subset)
                else:
                    failures.append(f"{subset} shard {shard:05d}: {_reason(future.state)}")
    finally:
        close_children()
    if failures:
        get_run_logger().error("\n".join(failures))
        raise BuildFailed(
            f"{len(failures)} of {len(todo)} shards failed; run the same command again to make those. First:\n"
            + "\n".join(failures[:5])
        )
    return len(todo)


def _shards_at_a_time(source: Source) -> int:
    """Where nobody asks for a number: 0, which is one a core, but 1 where each would fill a GPU with its own model."""
    return 1 if isinstance(source, StableDiffusion) and source.device == "gpu" else 0


def _reason(state: State[Any]) -> str:
    error = state.result(raise_on_failure=False)
    if isinstance(error, BaseException):
        return "; ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", [])])
    return state.message or state.name or "unknown"
