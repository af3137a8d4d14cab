"""What a build shows in Prefect: log lines; then counts and cards."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.exceptions import MissingContextError
from prefect.runtime import flow_run

from twinset.contracts.errors import in_words
from twinset.stages.build import Silent
from twinset.stages.job import Job
from twinset.stages.status import state_of


@contextmanager
def cosmetic() -> Iterator[None]:
    """For what only shows in Prefect: where its server does not answer, the work goes on without it."""
    try:
        yield
    except httpx.HTTPError as error:
        get_run_logger().warning("not shown in Prefect: %s", in_words(error))


class Artifacts(Silent):
    """Phases of a build as log lines of its run; shards are tasks of their own."""

    def begin(self, stage: str, total: int, done: int) -> None:
        """As `stages.build.Progress.begin`."""
        if done:
            self.phase(stage, f"{done} of {total} shards are done")

    def phase(self, stage: str, doing: str) -> None:
        """As `stages.build.Progress.phase`."""
        if doing:
            try:
                get_run_logger().info("%s: %s", stage, doing)
            except MissingContextError:
                return  # in a thread of the engine's own, which belongs to no run


def describe_build(job: Job) -> None:
    """A table of counts, named as the flow is, and the card of each subset."""
    table, store = [], job.store
    for name in job.recipe.subsets:
        counts = state_of(store, name).counts()
        row = {"subset": name, "planned": counts["planned"], "kept": counts["kept"]}
        table.append({**row, **counts["rejected"], "shards": counts["shards"]})
        card = store.read(f"{name}/README.md").decode("utf-8", "replace")
        create_markdown_artifact(card, key=f"{name}-card", description=f"What {store.root}/{name} holds")
    create_table_artifact(table, key=flow_run.flow_name or "build", description=f"What {store.root} holds")
