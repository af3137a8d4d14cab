"""What is wrong with a dataset: one record behind ``status``, ``verify``, ``plan``, ``publish`` and the exit code."""

from collections.abc import Sequence
from dataclasses import dataclass

from twinset.contracts.canonical import digest
from twinset.contracts.plan import PlannedShard, plan_digest
from twinset.contracts.stage import Stage
from twinset.shards.storage import layout


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, and what to do about it.

    code: what kind, such as ``tar-damaged``. path: of the file or folder, below OUT. message: what is wrong with it.
    remedy: what to do. shard: its number, where it is of one.
    """

    code: str
    path: str
    message: str
    remedy: str
    shard: int | None = None

    def __str__(self) -> str:
        return "; ".join(filter(None, (f"{self.path}: {self.message}", self.remedy)))


def plan_again(home: str) -> str:
    """A remedy: have a stage planned again."""
    return f"remove {layout.meta(home, 'stage.json')} and run the same build again; shards that agree stay"


def make_again(home: str, shard: int) -> str:
    """A remedy: have a shard made again. Without the removal a build trusts what it hashed once."""
    return f"remove {layout.receipt(home, shard)} and run the same build again"


def index_again(home: str) -> str:
    """A remedy: have the index written again."""
    return f"remove {layout.meta(home, 'index.json')} and run the same build again"


def plan_problem(home: str, stage: Stage, planned: Sequence[PlannedShard]) -> Problem | None:
    """A record that its own facts or its list of shards contradict. Raises ValueError or TypeError for odd facts."""
    if digest(stage.facts) != stage.content:
        path = layout.meta(home, "stage.json")
        return Problem("plan-damaged", path, "its digest is not that of its facts", plan_again(home))
    counts = sum(shard.planned for shard in planned), len(planned)
    is_one_table = stage.facts["makes"] == "table" and not planned
    if not is_one_table and (plan_digest(planned), *counts) != (stage.plan, stage.planned, stage.shards):
        path = layout.plan(home, "shards.parquet")
        return Problem("plan-damaged", path, "not the plan of stage.json", plan_again(home))
    return None
