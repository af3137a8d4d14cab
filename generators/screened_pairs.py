"""Copies of the pairs that people or a model kept (EqBen, sections B.2 and B.5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, cast

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.copied_pairs import COPIED, CopiedPair, CopiedPairCandidate, copied, planned, twins
from twinset.generators.decisions.pairs import DUPLICATE, SCREENED_OUT
from twinset.generators.decisions.question import KeepPair
from twinset.generators.reasons import reasons_beside
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage

REPORT = "screening.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedPairCandidate(CopiedPairCandidate):
    """A pair with the reason why it is left out, empty where it stays, and what people or a model said."""

    dropped: str
    detail: str


class ScreenedPairs(Source):
    """The pairs of a stage without those that people dropped, or a model; each with its key.

    pairs: the stage that made them. decisions: the stage of `pair-screening` that asked people about them, or of
    `pair-verification` (twinset-extras) with a threshold, which asked a model. licence: unused: each pair keeps that of
    its own source.
    """

    kind: Literal["screened-pairs"]
    pairs: StageName
    decisions: StageName
    licence: str = ""

    version = 2
    candidate = ScreenedPairCandidate
    micro_batch: ClassVar[int] = 64  # pairs that are looked for in a tar at once
    makes = "pair"
    copies = "pairs"
    verb = "kept from"
    reports = (REPORT,)
    card_template = Path(__file__).with_name("screened_pairs.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**SCREENED_OUT, **reasons_beside(__file__, "screened-pairs")}
    answers: ClassVar[Mapping[str, str]] = {**KeepPair.reasons, "drop": "no reason given"}

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes == "table" and getattr(earlier, "threshold", 0) is None:
            return f"{earlier.kind} without a threshold drops no pair, whatever was answered; set one, such as 1.0"
        return ""

    @cached_property
    def _pairs(self) -> FinishedStage:
        return self.stage.earlier(self.pairs)

    @cached_property
    def _decisions(self) -> FinishedStage:
        return self.stage.earlier(self.decisions)

    @cached_property
    def _by_model(self) -> bool:
        return "distinguishing_score" in self._decisions.columns()

    @cached_property
    def _verdicts(self) -> dict[str, tuple[str, str]]:
        """By key of a pair that was judged, or that repeats another one: why it is dropped, and what was said."""
        verdicts = dict.fromkeys(self._decisions.read(["subject"])["subject"].to_pylist(), ("", ""))
        for row in self._decisions.rejected(["identity", "reason", "detail"]).to_pylist():
            reason, detail = row["reason"], row["detail"]
            verdict = ("refuted", f"{reason}: {detail}") if self._by_model else (reason, detail)
            verdicts.setdefault(json.loads(row["identity"])[0], verdict)
        return verdicts | {key: (DUPLICATE, f"same as {first}") for key, first in twins(self._pairs).items()}

    def inputs(self) -> str:
        """Digest of the stage that made the pairs; decisions are fields of the candidates."""
        return digest(self._pairs.digest)

    def plan_inputs(self) -> str:
        return digest(self._decisions.digest)

    def plan(self) -> Iterator[ScreenedPairCandidate]:
        """All pairs of the stage. Raises `WrongUse` when a pair was never asked about."""
        for row in self._pairs.pictured_rows(COPIED):
            if row["key"] not in self._verdicts:
                raise WrongUse(
                    f"{self._decisions.where}: nobody was asked about {row['key']} of {self._pairs.where}; name the "
                    "stage that asks about these pairs, and build it again"
                )
            dropped, detail = self._verdicts[row["key"]]
            yield ScreenedPairCandidate(**planned(row), dropped=dropped, detail=detail)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[CopiedPair | Rejected]:
        """Copies of the pairs that stay. Raises `BrokenTar`: a pair is absent from its stage, or has other images."""
        pairs = cast(Sequence[ScreenedPairCandidate], candidates)
        stored = self._pairs.samples((pair.tar, pair.key) for pair in pairs if not pair.dropped)
        for pair in pairs:
            if pair.dropped:
                yield Rejected(pair.key, pair.dropped, pair.detail)
            else:
                yield copied(self._pairs, pair, stored[pair.key])

    def report_files(self) -> Mapping[str, bytes]:
        """``screening.json``: pairs kept, repeated, and dropped by what people said, or by a model's reason."""
        verdicts = self._verdicts.values()
        reasons = Counter(reason for reason, _ in verdicts)
        dropped = Counter(detail.partition(":")[0] for reason, detail in verdicts if reason not in ("", DUPLICATE))
        report = {
            "kept": reasons[""],
            "duplicates": reasons[DUPLICATE],
            "dropped": dict(dropped.most_common()),
            "model": self._by_model,
        }
        return {REPORT: json.dumps(report).encode()}
