"""``twinset build``: the same flow, in this process, with progress bars instead of Prefect's log lines."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from flows.orphans import end_with_this_process
from flows.server_watch import ending_without_server
from manifests.errors import BuildFailed
from manifests.genecis_settings import GeneCis
from manifests.recipe import Recipe, load_recipe

SERVER_SECONDS = "120"  # Prefect waits 20 for its temporary server, which a busy machine exceeds


def build(
    recipe: str,
    out: str,
    only: Sequence[str],
    settings: Sequence[str],
    workers: int,
    runner: str,
    quiet: bool = True,
) -> dict[str, Any]:
    """Run ``build-eqben`` here, or ``build-genecis`` where all subsets are of GeneCIS; with ``PREFECT_API_URL`` set it
    reports there, else to Prefect's temporary server.

    Arguments are those of the command line. Returns ``{"subsets": {NAME: counts}}``.
    """
    # Read when Prefect is imported, which is why it is imported below.
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", SERVER_SECONDS)
    if quiet:
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW", "ignore")
    from shards.storage.store import Store
    from stages.inputs import check_devices, check_inputs

    # A wrong recipe or place is found out before Prefect's server costs its seconds.
    loaded = load_recipe(recipe, settings).only(only)
    check_inputs(loaded)
    check_devices(loaded, runner)
    Store(out)
    end_with_this_process()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    from flows.build_eqben import build_eqben
    from flows.build_genecis import build_genecis
    from flows.reporting import Bars, report_to

    _check_server()
    arguments: dict[str, Any] = {
        "recipe": recipe,
        "out": out,
        "only": list(only),
        "settings": list(settings),
        "workers": workers,
        "runner": runner,
    }
    with contextlib.ExitStack() as around:
        around.enter_context(ending_without_server())
        if quiet and sys.stderr.isatty():
            report_to(around.enter_context(Bars()))
        try:
            flow = build_genecis if all_of_genecis(loaded) else build_eqben
            counts: dict[str, Any] = flow(**arguments)
        except RuntimeError as error:
            if "ephemeral Prefect API server" not in str(error):
                raise
            raise BuildFailed(
                f"Prefect's temporary server did not start in {SERVER_SECONDS} s; run the same command again when the "
                "machine is less busy, or set PREFECT_API_URL to a server's"
            ) from error
    return counts


def all_of_genecis(recipe: Recipe) -> bool:
    """Whether every subset of a recipe is of GeneCIS."""
    return all(isinstance(subset.source, GeneCis) for subset in recipe.subsets.values())


def _stop(number: int, _frame: FrameType | None) -> None:
    # At once: a terminal's Ctrl-C ends the temporary server too, and Prefect would ask it for minutes for its leave.
    # Whatever is half-done has no receipt.
    os.write(2, b"\ntwinset: interrupted; the same command resumes\n")
    os._exit(1)


def _check_server() -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

    url = PREFECT_API_URL.value()
    if not url:
        return
    with get_client(sync_client=True) as client:
        problem = client.api_healthcheck()
    if problem is not None:
        raise BuildFailed(
            f"Prefect's server at {url} does not answer ({type(problem).__name__}: {problem}); start it with prefect "
            "server start, or unset PREFECT_API_URL to run with a temporary one"
        )
