"""The planned tasks of a finished stage of decisions, with their decisions: also those that dropped their subject."""

from __future__ import annotations

from typing import cast

from generators.decisions.task import TaskCandidate
from manifests.plan import plan_file, read_slice
from shards.earlier import Earlier
from shards.records import read_planned
from shards.storage import layout


def tasks_of(earlier: Earlier) -> list[TaskCandidate]:
    """All tasks in plan order."""
    found: list[TaskCandidate] = []
    for shard in read_planned(earlier.store, earlier.home):
        file, row_group = plan_file(shard.shard)
        with earlier.store.open(layout.plan(earlier.home, file)) as stream:
            found += cast(list[TaskCandidate], read_slice(stream, row_group, TaskCandidate))
    return found
