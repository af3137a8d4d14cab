"""Asks people whether to keep each pair of a stage, as EqBen did for EQ-GEBC and EQ-SD (sections 4.2, B.2, B.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa
from pydantic import field_validator

from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.copied_pairs import HASHED, IMAGES, PAIR_COLUMNS
from twinset.generators.decisions.question import TaskCandidate
from twinset.generators.decisions.questions import QUESTIONS, KeepPair, question_of
from twinset.generators.decisions.source import Decisions
from twinset.generators.papers import EQBEN
from twinset.shards.finished_stage import FinishedStage

SCREENED_OUT: Mapping[str, str] = {"screened-out": "people looked at the pair and dropped it"}


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


class PairScreening(Decisions):
    """Keep or drop each pair of a stage.

    pairs: the stage. question: what is asked, a name of a review question that drops pairs as ``screened-out``.
    """

    kind: Literal["pair-screening"]
    pairs: StageName
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

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes != "pair":
            return f"people are asked about pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        question = question_of(self.question)
        pairs = self.pictured.read([*PAIR_COLUMNS, *HASHED, "content"])
        repeated = twins(pairs)
        for row in pairs.to_pylist():
            if row["key"] in repeated:
                left_out.add(DUPLICATE, f"{row['key']} (same as {repeated[row['key']]})")
                continue
            yield TaskCandidate(
                key=sample_key(self.stage.name, row["key"]),
                identity=identity_of(row["key"]),
                group=row["group"],
                split=row["split"],
                question=question.name,
                texts=(row["caption0"], row["caption1"]),
                images=tuple(f"{row['key']}/{role}" for role in IMAGES),
                image_tars=(row["tar"],) * len(IMAGES),
                image_sha256s=tuple(row[name] for name in HASHED),
                subject=row["key"],
            )

    @cached_property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.pairs)
