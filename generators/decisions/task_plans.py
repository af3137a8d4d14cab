"""The planned tasks of a stage of decisions, with their decisions: also those that dropped their subject."""

from typing import cast

from twinset.generators.decisions.task import TaskCandidate
from twinset.manifests.plan import plan_file, read_slice
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.records import read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store


def tasks_of(earlier: FinishedStage) -> list[TaskCandidate]:
    """All tasks of a finished stage in plan order."""
    return planned_tasks(earlier.store, earlier.home)


def planned_tasks(store: Store, home: str) -> list[TaskCandidate]:
    """All tasks of a planned stage in plan order; raises FileNotFoundError when it is not planned."""
    found: list[TaskCandidate] = []
    for shard in read_planned(store, home):
        file, row_group = plan_file(shard.shard)
        with store.open(layout.plan(home, file)) as stream:
            found += cast(list[TaskCandidate], read_slice(stream, row_group, TaskCandidate))
    return found
