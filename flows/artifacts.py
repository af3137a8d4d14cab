"""What a build shows in Prefect: log lines, errors in a line each; then counts and cards."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, TypeVar

import httpx
from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.exceptions import MissingContextError
from prefect.runtime import flow_run
from prefect.states import Failed

from twinset.contracts.errors import DecisionsMissing, TwinsetError, in_words
from twinset.stages.finish import Silent
from twinset.stages.job import Job, state_of


@contextmanager
def cosmetic() -> Iterator[None]:
    """For what only shows in Prefect: where its server does not answer, the work goes on without it."""
    try:
        yield
    except httpx.HTTPError as error:
        get_run_logger().warning("not shown in Prefect: %s", in_words(error))


Work = TypeVar("Work", bound=Callable[..., Any])
#: How messages name what the command line takes, and what a deployment's run takes instead.
PARAMETERS = (
    (r" \(--verbose shows the traceback\)|(?<=--workers 1) --verbose", ""),
    (r"--set ([\w.-]+=[^\s;,)]+)", r"""settings=["\1"]"""),
    (r"--set\b", "settings"),
    (r"(?<![\w-])(?<!OUT )--([a-z]+)", r"`\1`"),
    (r"the same (command|build|twinset build)\b", "the same deployment"),
)


def in_parameters(error: Exception) -> str:
    """An error's message for who runs a deployment."""
    message = in_words(error)
    for word, parameter in PARAMETERS:
        message = re.sub(word, parameter, message)
    return message


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a log record is no repetition; an expected error that ends a run has no traceback then."""
    error = record.exc_info[1] if record.exc_info else record
    if isinstance(error, TwinsetError | OSError):
        record.msg, record.args, record.exc_info = in_parameters(error), (), None
    return error is not None


for runs in ("prefect.flow_runs", "prefect.task_runs"):
    logging.getLogger(runs).addFilter(_is_news)


def told(work: Work) -> Work:
    """Work of which an expected error is a state of failure: of what is raised Prefect logs the traceback."""

    @wraps(work)
    def run(*given: Any, **named: Any) -> Any:
        try:
            return work(*given, **named)
        except (TwinsetError, OSError) as error:
            name = "Waiting" if isinstance(error, DecisionsMissing) else None
            return Failed(name=name, message=in_parameters(error), data=error)

    return run  # type: ignore[return-value]


class Artifacts(Silent):
    """Phases of a build as log lines of its run; shards are tasks of their own."""

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.finish.Progress.phase`."""
        if doing:
            with suppress(MissingContextError):  # in a thread of the engine's own, which belongs to no run
                get_run_logger().info("%s: %s", stage, doing)


def describe_build(job: Job) -> None:
    """A table of counts, named as the flow is, and the card of each subset; what is not there is left out."""
    table, store = [], job.store
    for name in job.recipe.subsets:
        with suppress(TwinsetError, FileNotFoundError):
            counts = state_of(store, name).counts()
            row = {"subset": name, "planned": counts["planned"], "kept": counts["kept"]}
            table.append({**row, **counts["rejected"], "shards": counts["shards"]})
            card = store.read(f"{name}/README.md").decode("utf-8", "replace")
            create_markdown_artifact(card, key=f"{name}-card", description=f"What {store.root}/{name} holds")
    create_table_artifact(table, key=flow_run.flow_name or "build", description=f"What {store.root} holds")
