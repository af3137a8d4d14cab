"""Pairs that people or a model kept: what people are asked, and the copies of what stays (EqBen, sections B.2 and B.5).

Sources ``pair-screening``, as EqBen asked about EQ-GEBC and EQ-SD (section 4.2), and ``screened-pairs``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from pydantic import field_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest, identity_of, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import CopiedPair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.markdown import block_of
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.copied_pairs import COPIED, HASHED, IMAGES, PAIR_COLUMNS, CopiedPairCandidate, copied, planned
from twinset.generators.decisions.question import DROP, QUESTIONS, KeepPair, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.papers import EQBEN
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage

CAPTIONS = ("caption0", "caption1")
REPORT = "screening.json"
SCREENED_OUT: Mapping[str, str] = {"screened-out": "people looked at the pair and dropped it"}
DUPLICATE = "duplicate"  # a reason of the engine's
KEPT, UNDECIDED, REFUTED = "", "undecided", "refuted"


def twins(pairs: FinishedStage) -> dict[str, str]:
    """By key of each pair with the images and captions of another one: the key of the one that stays.

    That is the one of the smallest identity, as where the engine drops duplicates.
    """
    rows = pairs.read(["content", "identity", "key"]).to_pylist()
    first: dict[str, str] = {}
    ordered = sorted((row["content"], row["identity"], row["key"]) for row in rows)
    return {key: first[content] for content, _, key in ordered if first.setdefault(content, key) != key}


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
        **more: str,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedPairCandidate(CopiedPairCandidate):
    """A pair with what people decided on it.

    dropped: the reason why it is left out, `KEPT` where it stays; detail: what people said.
    """

    dropped: str
    detail: str


class ScreenedPairs(Source):
    """The pairs of a stage without those that people dropped, or a model; each with its key.

    pairs: the stage that made them. decisions: the stage of `pair-screening` that asked people about them, or of
    `image-verification` with a threshold, which asked a model. licence: unused: each pair keeps that of its own source.
    """

    kind: Literal["screened-pairs"]
    pairs: StageName
    decisions: StageName
    licence: str = ""

    version = 1
    candidate = ScreenedPairCandidate
    micro_batch: ClassVar[int] = 64  # pairs that are looked for in a tar at once
    makes = "pair"
    verb = "kept from"
    reports = (REPORT,)
    card_template = Path(__file__).with_name("screened_pairs.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**SCREENED_OUT, **reasons_beside(__file__, "screened-pairs")}

    @property
    def copies(self) -> str | None:
        return self.pairs

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes not in ("pair", "table"):
            return f"pairs are kept or dropped, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    @cached_property
    def _pairs(self) -> FinishedStage:
        return self.stage.earlier(self.pairs)

    @cached_property
    def _decisions(self) -> FinishedStage:
        return self.stage.earlier(self.decisions)

    @cached_property
    def _by_model(self) -> bool:
        """Whether a model decided; raises `WrongUse` where nothing was decided by what it answered."""
        by_model = {"distinguishing_score", *HASHED} <= {*self._decisions.columns()}
        if by_model and self._decisions.stage.facts["settings"]["source"]["threshold"] is None:
            raise WrongUse(
                f"{self._decisions.where}: has no threshold, so that it drops no pair, whatever was answered; set "
                "source.threshold of this stage, such as 1.0"
            )
        return by_model

    @cached_property
    def _verdicts(self) -> dict[str, tuple[str, str]]:
        """By key of a pair that repeats another one, or that people or a model judged: why it is dropped, and what was
        said."""
        verdicts = dict.fromkeys(self._decisions.read(["subject"])["subject"].to_pylist(), (KEPT, ""))
        for row in self._decisions.rejected(["identity", "reason", "detail"]).to_pylist():
            reason, detail = row["reason"], row["detail"]
            verdict = (REFUTED, f"{reason}: {detail}") if self._by_model else (reason, detail)
            verdicts.setdefault(json.loads(row["identity"])[0], verdict)
        return verdicts | {key: (DUPLICATE, f"same as {first}") for key, first in twins(self._pairs).items()}

    def inputs(self) -> str:
        """Digest of the stage that made the pairs; decisions are fields of the candidates."""
        return digest(self._pairs.digest)

    def plan_inputs(self) -> str:
        return digest(self._decisions.digest)

    def plan(self) -> Iterator[ScreenedPairCandidate]:
        """All pairs of the stage. Raises `WrongUse` when a pair was never asked about, or with other images."""
        judged = self._decisions.read(["subject", *HASHED]).to_pylist() if self._by_model else []
        seen = {row.pop("subject"): row for row in judged}
        for batch in self._pairs.batches(COPIED):
            for row in batch.to_pylist():
                key, shown = row["key"], {name: row[name] for name in HASHED}
                if key not in self._verdicts:
                    raise WrongUse(
                        f"{self._decisions.where}: nobody was asked about {key} of {self._pairs.where}; name the stage "
                        "that asks about these pairs, and build it again"
                    )
                if seen.get(key, shown) != shown:
                    raise WrongUse(
                        f"{self._decisions.where}: asked about other images of {key} than {self._pairs.where} has; "
                        "build the stage that asks again, from these pairs"
                    )
                dropped, detail = self._verdicts[key]
                yield ScreenedPairCandidate(**planned(row), dropped=dropped, detail=detail)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[CopiedPair | Rejected]:
        """Copies of the pairs that people kept. Raises `BrokenTar`: a pair is absent from its stage, or not the one
        that people saw.
        """
        pairs = cast(Sequence[ScreenedPairCandidate], candidates)
        stored = self._pairs.samples((pair.tar, pair.key) for pair in pairs if pair.dropped == KEPT)
        for pair in pairs:
            if pair.dropped == KEPT:
                yield copied(self._pairs, pair, stored[pair.key])
            else:
                yield Rejected(pair.key, pair.dropped, pair.detail)

    def report_files(self) -> Mapping[str, bytes]:
        """``screening.json``: pairs planned, made, repeated, shown, kept, undecided, and dropped by what people said,
        or by the reason of a model's stage."""
        reasons = Counter(reason for reason, _ in self._verdicts.values())
        dropped = Counter(
            detail.partition(":")[0] if reason == REFUTED else detail or reason
            for reason, detail in self._verdicts.values()
            if reason not in (KEPT, UNDECIDED, DUPLICATE)
        )
        report = {
            "planned": self._pairs.record.planned,
            "made": self._pairs.record.kept,
            "duplicates": reasons[DUPLICATE],
            "shown": reasons[KEPT] + dropped.total(),
            "kept": reasons[KEPT],
            "undecided": reasons[UNDECIDED],
            "dropped": dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))),
            "model": self._by_model,
        }
        return {REPORT: json.dumps(report).encode()}

    def how_made(self, reports: Mapping[str, Any]) -> str:
        meanings = {**KeepPair.reasons, DROP: "no reason given"}
        return block_of(self.card_template, "how_made", found=reports.get(REPORT), said=meanings)
