"""A build that the command line starts in this process and that reports to the server of ``PREFECT_API_URL``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from manifests.errors import BuildFailed
from manifests.recipe import Recipe

if TYPE_CHECKING:
    from flows.runners import Runner


def build_in_prefect(recipe: Recipe, out: str, workers: int, runner: Runner) -> dict[str, Any]:
    """Run the flow ``build-eqben``, or ``build-genecis`` where all subsets follow GeneCIS, in this process.

    Raises:
        BuildFailed: the server does not answer, or some shards could not be made.
    """
    # Read when Prefect is imported, which is why it is imported below.
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    from prefect import flow
    from prefect.client.orchestration import get_client

    from flows.build import STAGES_AT_A_TIME, build_loaded

    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()
    if problem is not None:
        raise BuildFailed(
            f"Prefect's server at {os.environ['PREFECT_API_URL']} does not answer ({type(problem).__name__}: {problem})"
            "; start it with prefect server start, or unset PREFECT_API_URL to build without one"
        )
    papers = {subset.source.paper.title if subset.source.paper else "" for subset in recipe.subsets.values()}
    name = "build-genecis" if papers == {"GeneCIS"} else "build-eqben"
    run = flow(name=name, persist_result=False, task_runner=STAGES_AT_A_TIME)(build_loaded)
    counts: dict[str, Any] = run(recipe, out, workers, runner, False, 100)
    return counts
