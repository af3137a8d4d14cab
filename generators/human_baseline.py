"""People's scores on pairs: four tasks a sampled pair, and who was right in which of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from itertools import groupby, product
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from twinset.contracts.parts import LeftOut
from twinset.generators.copied_pairs import HASHED, IMAGES
from twinset.generators.decisions.agreement import share_of
from twinset.generators.decisions.question import Decision, Match, TaskCandidate
from twinset.generators.screened_pairs import CAPTIONS, PairDecisions

QUERIES = (*IMAGES, *CAPTIONS)  # what each of the four tasks of a pair shows as its question


class HumanBaseline(PairDecisions):
    """Four questions about each of some pairs: which caption belongs to either image, which image to either caption.

    The tasks of a pair follow each other in the plan; the review page keeps them apart. The identity of a task is the
    key of its pair and one of `QUERIES`; its truth is the number of that query.

    pairs: a stage or subset of pairs. sample: how many of its pairs are asked about, chosen by a hash of seed and key;
    all where there are fewer.
    """

    kind: Literal["human-baseline"]
    sample: int = Field(default=500, ge=1)

    group = "pair"
    reads_subsets = True

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """As `Decisions.tasks`; nobody need look to know what is right: caption i belongs to image i."""
        table = self.pictured.read(["key", "tar", "split", *CAPTIONS, *HASHED])
        places = [(share_of(f"human baseline {self.stage.seed}", key), key) for key in table["key"].to_pylist()]
        sampled = sorted(nsmallest(self.sample, range(len(places)), key=places.__getitem__))
        for tar, rows in groupby(table.take(pa.array(sampled, pa.int64())).to_pylist(), key=itemgetter("tar")):
            pairs = list(rows)
            # The index does not say what differs in a pair; the JSON beside its images does.
            stored = self.pictured.samples((tar, row["key"]) for row in pairs)
            for row, query in product(pairs, QUERIES):
                yield self.task(
                    row,
                    query,
                    question=Match.name,
                    texts=CAPTIONS if query in IMAGES else (query,),
                    images=(query,) if query in IMAGES else IMAGES,
                    group=row["key"],
                    kind_name=stored[row["key"]].json.category,
                    truth=query[-1],
                )

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int | None:
        return int(decision.choice) if len(task.images) > 1 else None

    def measured(self) -> Mapping[str, Any]:
        """``pairs``: the stage that was asked about and the digest of its index. ``outcomes``: who was right.

        A row of outcomes: pair, kind; annotator, null for what the answers of all came to; right: of each of `QUERIES`,
        null where it was not answered. Answers that settled a disagreement count in what all came to alone.
        """
        right: dict[tuple[str, str], dict[str, bool]] = {}
        for task in self.gathered.tasks:
            answers = self.gathered.answers.get(task.key, ())
            given = {answer.annotator: answer.answer for answer in answers if not answer.adjudicated}
            if (decision := self.gathered.decisions.get(task.key)) is not None:
                given[""] = decision.choice
            for annotator, choice in given.items():
                right.setdefault((task.subject, annotator), {})[json.loads(task.identity)[1]] = choice == task.truth
        kinds = {task.subject: task.kind_name for task in self.gathered.tasks}
        outcomes = [
            {"pair": pair, "kind": kinds[pair], "annotator": name or None, "right": [own.get(one) for one in QUERIES]}
            for (pair, name), own in sorted(right.items())
        ]
        stage = self.pairs.rstrip("/").rpartition("/")[2]
        return {"pairs": {"stage": stage, "digest": self.pictured.digest, "sampled": len(kinds)}, "outcomes": outcomes}
