"""A build that the command line starts in this process and that reports to the server of ``PREFECT_API_URL``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe import Recipe
from twinset.flows.working_folder import refuse_settings_of_the_folder

if TYPE_CHECKING:
    from twinset.stages.run_here import Runner

#: Of Prefect. Deployments have the last four from prefect.yaml: flows/zombies.yaml relies on the heartbeats; requests
#: are sent again for a quarter of an hour; warnings of twinset stand in a run's log.
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
    "PREFECT_CLIENT_MAX_RETRIES": "9",
    "PREFECT_LOGGING_EXTRA_LOGGERS": "twinset",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}


def build_in_prefect(recipe: Recipe, out: str, workers: int, runner: Runner) -> dict[str, Any]:
    """Run a recipe's flow in this process: that of its name or of the paper that all its subsets follow.

    A recipe that fits none of them runs as ``build-eqben``. Raises `BuildFailed`: the server does not answer, or some
    shards could not be made; `WrongUse` as `refuse_settings_of_the_folder`.
    """
    refuse_settings_of_the_folder()
    # Read when Prefect is imported, which is why it is imported below.
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import httpx
    from prefect import flow, tags
    from prefect.client.orchestration import get_client

    from twinset.flows.build import FLOWS, STAGES_AT_A_TIME, build_loaded
    from twinset.flows.pools import labels_of

    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()
        if problem is None:
            try:
                client.api_version()  # the first request that needs a login, where the server asks for one
            except httpx.HTTPStatusError as error:
                problem = error
    if isinstance(problem, httpx.HTTPStatusError) and problem.response.status_code == httpx.codes.UNAUTHORIZED:
        raise BuildFailed(
            f"Prefect's server at {os.environ['PREFECT_API_URL']} asks for a login; set PREFECT_API_AUTH_STRING to its "
            "NAME:PASSWORD, or unset PREFECT_API_URL to build without a server"
        )
    if problem is not None:
        raise BuildFailed(
            f"Prefect's server at {os.environ['PREFECT_API_URL']} does not answer ({type(problem).__name__}: {problem})"
            "; start it with prefect server start, or unset PREFECT_API_URL to build without one"
        )
    papers = {paper.title.lower() if (paper := recipe.paper(name)) else "" for name in recipe.subsets}
    candidates = [f"build-{recipe.name}", *(f"build-{paper}" for paper in papers if len(papers) == 1)]
    known = [one.name for one in FLOWS]
    name = next((one for one in candidates if one in known), known[0])
    run_name = f"{recipe.name} in {out}"
    run = flow(name=name, flow_run_name=run_name, persist_result=False, task_runner=STAGES_AT_A_TIME)(build_loaded)
    with tags(*labels_of(out), recipe.name):
        counts: dict[str, Any] = run(recipe, out, workers, runner, False, 100)
    return counts
