"""Copies of the pairs that people or a model kept (EqBen, sections B.2 and B.5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import CopiedPair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.markdown import block_of
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import SourceSettings, StageName
from twinset.generators.copied_pairs import COPIED, HASHED, CopiedPairCandidate, copied, planned, twins
from twinset.generators.decisions.pairs import DUPLICATE, SCREENED_OUT
from twinset.generators.decisions.question import DROP, KeepPair
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage

REPORT = "screening.json"
KEPT, UNDECIDED, REFUTED = "", "undecided", "refuted"


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
    `pair-verification` (twinset-extras) with a threshold, which asked a model. licence: unused: each pair keeps that of
    its own source.
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
