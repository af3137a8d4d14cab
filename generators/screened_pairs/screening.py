"""Plans a task a pair: whether people keep it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import pyarrow as pa

from twinset.generators.decisions.generator import DecisionGenerator
from twinset.generators.decisions.questions.keep_pair import KEEP, KeepPair
from twinset.generators.decisions.task import TaskCandidate
from twinset.generators.screened_pairs.asking import PairScreening
from twinset.manifests.canonical import identity_of, sample_key
from twinset.shards.contracts import LeftOut
from twinset.shards.finished_stage import FinishedStage

IMAGES = ("image0", "image1")
PAIR_COLUMNS = ("key", "identity", "tar", "split", "group", "caption0", "caption1")
HASHED = tuple(f"{role}_sha256" for role in IMAGES)
DUPLICATE = "duplicate"  # a reason of the engine's


def twins(pairs: pa.Table) -> dict[str, str]:
    """By key of each pair with the images and captions of another one: the key of the one that stays.

    That is the one of the smallest identity, as where the engine drops duplicates.

    Args:
        pairs: columns ``key``, ``identity`` and ``content`` of an index.
    """
    rows = sorted(zip(*(pairs[name].to_pylist() for name in ("content", "identity", "key")), strict=True))
    first: dict[str, str] = {}
    return {key: first[content] for content, _, key in rows if first.setdefault(content, key) != key}


class PairScreeningGenerator(DecisionGenerator[PairScreening]):
    """One task a pair, in the order of the stage; the identity of a task is the key of its pair. Of pairs with the same
    images and captions, which a build would keep one of, one is asked about."""

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """As `DecisionGenerator.tasks`."""
        truth = KEEP if self.source.simulated else ""
        pairs = self.pictured.read([*PAIR_COLUMNS, *HASHED, "content"])
        repeated = twins(pairs)
        for row in pairs.to_pylist():
            if row["key"] in repeated:
                left_out.add(DUPLICATE, f"{row['key']} (same as {repeated[row['key']]})")
                continue
            yield TaskCandidate(
                key=sample_key(self.name, row["key"]),
                identity=identity_of(row["key"]),
                group=row["group"],
                split=row["split"],
                question=KeepPair.name,
                texts=(row["caption0"], row["caption1"]),
                images=tuple(f"{row['key']}/{role}" for role in IMAGES),
                image_tars=(row["tar"],) * len(IMAGES),
                image_sha256s=tuple(row[name] for name in HASHED),
                subject=row["key"],
                truth=truth,
            )

    @cached_property
    def pictured(self) -> FinishedStage:
        """As `DecisionGenerator.pictured`."""
        return self.context.earlier(self.source.pairs)
