"""Questions about pairs: is it a good one (EqBen, sections 4.2, B.2, B.5); which caption belongs to which image.

Sources ``pair-screening``, as EqBen asked about EQ-GEBC and EQ-SD, and ``human-baseline``, people's scores on pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from heapq import nsmallest
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from twinset.contracts.parts import LeftOut
from twinset.contracts.recipe import Subset
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.copied_pairs import HASHED, IMAGES, PAIR_COLUMNS, category_of, twins
from twinset.generators.decisions.agreement import share_of
from twinset.generators.decisions.question import KeepPair, Match, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.papers import EQBEN
from twinset.shards.finished_stage import FinishedStage

QUERIES = (*IMAGES, "caption0", "caption1")  # what each of the four tasks of a pair shows as its question
SCREENED_OUT: Mapping[str, str] = {"screened-out": "people looked at the pair and dropped it"}
DUPLICATE = "duplicate"  # a reason of the engine's


class PairDecisions(Decisions):
    """Questions about the pairs of a stage.

    pairs: the stage.
    """

    pairs: StageName

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes == "pair":
            return ""
        return f"people are asked about pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"

    @cached_property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.pairs)

    def shown(self, row: Mapping[str, Any], *roles: str) -> list[tuple[str, str, str]]:
        """Images of the pair of a row of the index, for `task`."""
        return [(f"{row['key']}/{role}", row["tar"], row[f"{role}_sha256"]) for role in roles]


class PairScreening(PairDecisions):
    """Keep or drop each pair of a stage by the first caption of each image, in its order; of equal pairs one is asked.

    pairs: the stage.
    """

    kind: Literal["pair-screening"]

    asks = KeepPair
    paper = EQBEN
    reasons: ClassVar[Mapping[str, str]] = SCREENED_OUT

    def stages_for(self, name: str, subset: Subset) -> tuple[dict[str, Subset], Subset]:
        """The stages that ``screening`` of a subset NAME is short for, and the subset in its place.

        NAME-candidates are the subset as it was, with its keys and bytes; NAME-decisions ask people about them; NAME
        copies the pairs that they kept.
        """
        candidates, decisions = f"{name}-candidates", f"{name}-decisions"
        stored: Any = {name: getattr(subset, name) for name in ("shard_size", "split", "language")}
        kept: Any = {"kind": "screened-pairs", "pairs": candidates, "decisions": decisions}
        asked = Subset(source=self.model_copy(update={"pairs": candidates}), **stored)
        earlier = subset.model_copy(update={"known_as": name, "screening": None})
        return {candidates: earlier, decisions: asked}, Subset(source=kept, encoding=subset.encoding, **stored)

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        repeated = twins(self.pictured)
        for row in self.pictured.read([*PAIR_COLUMNS, *HASHED]).to_pylist():
            if row["key"] in repeated:
                left_out.add(DUPLICATE, f"{row['key']} (same as {repeated[row['key']]})")
            else:
                yield self.task(
                    row["key"],
                    texts=(row["caption0"], row["caption1"]),
                    images=self.shown(row, *IMAGES),
                    subject=row["key"],
                    split=row["split"],
                    group=row["group"],
                )


class HumanBaseline(PairDecisions):
    """Four questions about each of some pairs: which caption belongs to either image, which image to either caption.

    The tasks of a pair follow each other in the plan; the review page keeps them apart. The identity of a task is the
    key of its pair and one of `QUERIES`, whose number is the right answer.

    pairs: a stage or subset of pairs. sample: how many of its pairs are asked about, chosen by a hash of seed and key;
    all where there are fewer.
    """

    kind: Literal["human-baseline"]
    sample: int = Field(default=500, ge=1)

    asks = Match
    group = "pair"
    reads_subsets = True

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """As `Decisions.tasks`; nobody need look to know what is right: caption i belongs to image i."""
        table = self.pictured.read([*PAIR_COLUMNS, *HASHED])
        keys, purpose = table["key"].to_pylist(), f"human baseline {self.stage.seed}"
        sampled = nsmallest(self.sample, range(len(keys)), key=lambda number: share_of(purpose, keys[number]))
        for row in table.take(pa.array(sorted(sampled), pa.int64())).to_pylist():
            # The index does not say what differs in a pair; the JSON beside its images does.
            stored = self.pictured.samples([(row["tar"], row["key"])])[row["key"]]
            captions = row["caption0"], row["caption1"]
            for query in QUERIES:
                yield self.task(
                    row["key"],
                    query,
                    texts=captions if query in IMAGES else (row[query],),
                    images=self.shown(row, *((query,) if query in IMAGES else IMAGES)),
                    subject=row["key"],
                    split=row["split"],
                    group=row["key"],
                    kind_name=category_of(stored.json),
                )

    def measured(self) -> Mapping[str, Any]:
        """``pairs``: the stage that was asked about and the digest of its index. ``outcomes``: who was right.

        A row of outcomes: pair, kind; annotator, null for what the answers of all came to; right: of each of `QUERIES`,
        null where it was not answered.
        """
        right: dict[tuple[str, str], dict[str, bool]] = {}
        for task in self.gathered.tasks:
            given = {answer.annotator: answer.answer for answer in self.gathered.answers[task.key]}
            if (decision := self.gathered.decisions.get(task.key)) is not None:
                given[""] = decision.choice
            query = json.loads(task.identity)[1]
            for annotator, choice in given.items():
                right.setdefault((task.subject, annotator), {})[query] = choice == query[-1]
        kinds = {task.subject: task.kind_name for task in self.gathered.tasks}
        outcomes = [
            {"pair": pair, "kind": kinds[pair], "annotator": name or None, "right": [*map(own.get, QUERIES)]}
            for (pair, name), own in sorted(right.items())
        ]
        stage = self.pairs.rstrip("/").rpartition("/")[2]
        return {"pairs": {"stage": stage, "digest": self.pictured.digest, "sampled": len(kinds)}, "outcomes": outcomes}
