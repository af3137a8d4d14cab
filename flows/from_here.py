"""A build that the command line starts in this process and that reports to the server of ``PREFECT_API_URL``."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from prefect.settings import PREFECT_API_URL

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.locations import is_loopback
from twinset.contracts.recipe import Recipe

if TYPE_CHECKING:
    from twinset.stages.run_here import Runner

#: The files that Prefect looks for, and whether one holds settings of Prefect.
_SETTINGS: Mapping[str, Callable[[str], bool]] = {
    "prefect.toml": lambda text: True,
    "pyproject.toml": lambda text: "prefect" in tomllib.loads(text).get("tool", {}),
    ".env": lambda text: re.search("prefect", text, re.IGNORECASE) is not None,
}


def refuse_settings_of_the_folder() -> None:
    """Raise `WrongUse` where Prefect would read settings from files of the working folder, which may be a download.

    They can name code: Prefect's configuration of logs does.
    """
    for name, in_it in _SETTINGS.items():
        try:
            found = in_it(Path(name).read_text("utf-8", "replace"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, RecursionError):
            found = True  # Prefect may read it otherwise
        if found:
            raise WrongUse(
                f"{Path(name).absolute()}: holds settings of Prefect, which can run code; start twinset in another "
                "folder, and set what you need as environment variables (PREFECT_...) or in a profile of Prefect"
            )


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


SECONDS = 5.0  # that a server may take to answer; one that does not is not warned of


def warn_without_login() -> None:
    """Say on stderr, once a process, if the API that it uses asks for no login and other machines reach it."""
    if url := PREFECT_API_URL.value():
        _warn(url.rstrip("/"))


@cache
def _warn(url: str) -> None:
    if is_loopback(urlsplit(url).hostname or ""):
        return
    try:
        # Without the login that this process may have: what matters is what others get.
        is_open = httpx.get(f"{url}/admin/version", timeout=SECONDS).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return
    if is_open:
        print(
            f"warning: Prefect's API at {url} asks for no login: all who reach it, and web pages that they open, can "
            "run commands on the workers; set PREFECT_SERVER_API_AUTH_STRING for the server, and "
            "PREFECT_API_AUTH_STRING for all that use it (docs/cluster.md)",
            file=sys.stderr,
            flush=True,
        )
