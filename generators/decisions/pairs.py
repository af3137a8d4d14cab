"""Questions about pairs: is it a good one (EqBen, sections 4.2, B.2, B.5); which caption belongs to which image.

Sources ``pair-screening``, as EqBen asked about EQ-GEBC and EQ-SD, and ``human-baseline``, people's scores on pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import groupby, product
from operator import itemgetter
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field, field_validator

from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.copied_pairs import HASHED, IMAGES, PAIR_COLUMNS, twins
from twinset.generators.decisions.agreement import share_of
from twinset.generators.decisions.question import QUESTIONS, Decision, KeepPair, Match, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.papers import EQBEN
from twinset.shards.finished_stage import FinishedStage

CAPTIONS = ("caption0", "caption1")
QUERIES = (*IMAGES, *CAPTIONS)  # what each of the four tasks of a pair shows as its question
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

    def task(
        self,
        row: Mapping[str, Any],
        *query: str,
        question: str,
        texts: Sequence[str],
        images: Sequence[str],
        **more: Any,
    ) -> TaskCandidate:
        """A task about the pair of a row of the index, which shows these captions and images of it.

        query: tells it from other tasks about the pair.
        """
        return TaskCandidate(
            key=sample_key(self.stage.name, row["key"], *query),
            identity=identity_of(row["key"], *query),
            split=row["split"],
            question=question,
            texts=tuple(row[caption] for caption in texts),
            images=tuple(f"{row['key']}/{role}" for role in images),
            image_tars=(row["tar"],) * len(images),
            image_sha256s=tuple(row[f"{role}_sha256"] for role in images),
            subject=row["key"],
            **more,
        )


class PairScreening(PairDecisions):
    """Keep or drop each pair of a stage, in its order; of pairs with the same images and captions, one is asked about.

    pairs: the stage. question: what is asked, a name of a review question that drops pairs as ``screened-out``.
    """

    kind: Literal["pair-screening"]
    question: str = KeepPair.name

    paper = EQBEN
    reasons: ClassVar[Mapping[str, str]] = {**Decisions.reasons, **SCREENED_OUT}

    @field_validator("question")
    @classmethod
    def _drops_pairs(cls, question: str) -> str:
        if {*QUESTIONS.find(QUESTIONS.known(question)).drops.values()} != {*SCREENED_OUT}:
            raise ValueError(f"{question} does not drop pairs as screened-out; name another question")
        return question

    @property
    def brought(self) -> dict[str, str]:
        package = QUESTIONS.distribution(self.question)
        return super().brought | ({"question": package} if package else {})

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        repeated = twins(self.pictured)
        for row in self.pictured.read([*PAIR_COLUMNS, *HASHED]).to_pylist():
            if row["key"] in repeated:
                left_out.add(DUPLICATE, f"{row['key']} (same as {repeated[row['key']]})")
            else:
                yield self.task(row, question=self.question, texts=CAPTIONS, images=IMAGES, group=row["group"])


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
