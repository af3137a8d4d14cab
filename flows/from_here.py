"""A build that the command line starts in this process and that reports to the server of ``PREFECT_API_URL``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe import Recipe

if TYPE_CHECKING:
    from twinset.flows.pools import Runner

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
    """Run a recipe in this process as the flow of its name, or ``build-eqben`` where there is none.

    Raises `BuildFailed`: the server does not answer, or some shards could not be made.
    """
    # Read when Prefect is imported, which is why it is imported below.
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import httpx
    from prefect import flow, tags
    from prefect.client.orchestration import get_client

    from twinset.flows.build import FLOWS, STAGE_RUNNER, build_loaded
    from twinset.flows.pools import labels_of

    try:
        with get_client(sync_client=True) as client:
            client.api_version()
    except httpx.HTTPError as error:
        raise BuildFailed(
            f"Prefect's server at {os.environ['PREFECT_API_URL']} does not answer, or asks for a login ({error}); "
            "start it with prefect server start, set PREFECT_API_AUTH_STRING to its NAME:PASSWORD, or unset "
            "PREFECT_API_URL to build without a server"
        ) from error
    name = f"build-{recipe.name}" if f"build-{recipe.name}" in {known.name for known in FLOWS} else FLOWS[0].name
    run_name = f"{recipe.name} in {out}"
    run = flow(name=name, flow_run_name=run_name, persist_result=False, task_runner=STAGE_RUNNER)(build_loaded)
    with tags(*labels_of(out), recipe.name):
        return run(recipe, out, workers, runner, False, 100)
