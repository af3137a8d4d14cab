"""The pairs of a stage that people or a model kept, copied byte by byte."""

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
from twinset.generators.copied_pairs import COPIED, HASHED, CopiedPairCandidate, copied, planned
from twinset.generators.decisions.questions import DROP, KeepPair
from twinset.generators.image_verification.pairs import COLUMNS as VERIFIED
from twinset.generators.screened_pairs.pair_screening import DUPLICATE, SCREENED_OUT, twins
from twinset.shards.contracts import Source
from twinset.shards.finished_stage import FinishedStage

REPORT = "screening.json"


UNDECIDED, REFUTED = "undecided", "refuted"
SLICE = 4096  # pairs that are Python objects at a time
TOGETHER = 64  # pairs that are looked for in a tar at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedPairCandidate(CopiedPairCandidate):
    """A pair with what people decided on it.

    dropped: the reason why it is left out, empty where it was kept; detail: what people said.
    """

    dropped: str
    detail: str


class ScreenedPairs(Source):
    """The pairs of a stage without those that people dropped, or a model.

    pairs: the stage that made them. decisions: the stage of `pair-screening` that asked people about them, or of
    `image-verification` with a threshold, which asked a model. licence: unused: each pair keeps that of its own source.
    """

    kind: Literal["screened-pairs"]
    pairs: StageName
    decisions: StageName
    licence: str = ""

    makes = "pair"
    verb = "kept from"
    reports = (REPORT,)
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {**SCREENED_OUT, **reasons_beside(__file__, "screened-pairs")}

    @property
    def copies(self) -> str | None:
        return self.pairs

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes not in ("pair", "table"):
            return f"pairs are kept or dropped, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    def how_made(self, reports: Mapping[str, Any]) -> str:
        said = {**KeepPair.reasons, DROP: "no reason given"}
        return block_of(self.card_template, "how_made", found=reports.get(REPORT), said=said)

    version = 1
    candidate = ScreenedPairCandidate
    micro_batch: ClassVar[int] = TOGETHER

    def inputs(self) -> str:
        """Digest of the stage that made the pairs; decisions are fields of the candidates."""
        return digest(self._pairs.digest)

    def plan_inputs(self) -> str:
        return digest(self._decisions.digest)

    def plan(self) -> Iterator[ScreenedPairCandidate]:
        """All pairs of the stage.

        Raises `WrongUse` when a stage is of another kind, or a pair was never asked about, or with other images.
        """
        verdicts, repeated, seen = self._verdicts, self._twins, self._seen
        pairs = self._pairs.read(COPIED)
        for start in range(0, len(pairs), SLICE):
            for row in pairs.slice(start, SLICE).to_pylist():
                twin = repeated.get(row["key"])
                if twin is None and row["key"] not in verdicts:
                    raise WrongUse(
                        f"{self._decisions.where}: nobody was asked about {row['key']} of {self._pairs.where}; name "
                        "the stage that asks about these pairs, and build it again"
                    )
                if (shown := [row[name] for name in HASHED]) != seen.get(row["key"], shown):
                    raise WrongUse(
                        f"{self._decisions.where}: asked about other images of {row['key']} than {self._pairs.where} "
                        "has; build the stage that asks again, from these pairs"
                    )
                dropped, detail = (DUPLICATE, f"same as {twin}") if twin else verdicts[row["key"]]
                yield ScreenedPairCandidate(**planned(row), dropped=dropped, detail=detail)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[CopiedPair | Rejected]:
        """Copies of the pairs that people kept. Raises `BrokenTar`: a pair is absent from its stage, or not the one
        that people saw.
        """
        screened = cast(Sequence[ScreenedPairCandidate], candidates)
        found = self._pairs.samples((one.tar, one.key) for one in screened if not one.dropped)
        for one in screened:
            rejected = Rejected(one.key, one.dropped, one.detail) if one.dropped else None
            yield rejected or copied(self._pairs, one, found[one.key])

    def report_files(self) -> Mapping[str, bytes]:
        """``screening.json``: pairs planned, made, repeated, shown, kept, undecided, and dropped by what people said,
        or by the reason of a model's stage."""
        repeated = self._twins
        verdicts = Counter(verdict for key, verdict in self._verdicts.items() if key not in repeated)
        dropped = Counter[str]()
        for (reason, detail), count in verdicts.items():
            if reason not in ("", UNDECIDED):
                dropped[detail.partition(":")[0] if reason == REFUTED else detail or reason] += count
        kept, undecided = verdicts["", ""], sum(n for (why, _), n in verdicts.items() if why == UNDECIDED)
        found = {
            "planned": self._pairs.record.planned,
            "made": self._pairs.record.kept,
            "duplicates": len(repeated),
            "shown": kept + sum(dropped.values()),
            "kept": kept,
            "undecided": undecided,
            "dropped": dict(sorted(dropped.items(), key=lambda item: (-item[1], item[0]))),
            "model": self._by_model,
        }
        return {REPORT: json.dumps(found).encode()}

    @cached_property
    def _verdicts(self) -> Mapping[str, tuple[str, str]]:
        """By key of a pair: why it was dropped, empty where it was kept, and what was said."""
        rejected = self._decisions.rejected(["identity", "reason", "detail"]).to_pylist()
        found = {json.loads(row["identity"])[0]: (row["reason"], row["detail"]) for row in rejected}
        if self._by_model:
            found = {key: (REFUTED, f"{reason}: {detail}") for key, (reason, detail) in found.items()}
        return found | dict.fromkeys(self._decisions.read(["subject"])["subject"].to_pylist(), ("", ""))

    @cached_property
    def _by_model(self) -> bool:
        """Whether a model decided; raises `WrongUse` where nothing was decided by what it answered."""
        by_model = {*VERIFIED.names} <= {*self._decisions.columns()}
        if by_model and self._decisions.stage.facts["settings"]["source"]["threshold"] is None:
            raise WrongUse(
                f"{self._decisions.where}: has no threshold, so that it drops no pair, whatever was answered; set "
                "source.threshold of this stage, such as 1.0"
            )
        return by_model

    @cached_property
    def _seen(self) -> Mapping[str, list[str]]:
        """By key of a pair that a model kept: sha256 of the images that it saw."""
        rows = self._decisions.read(["subject", *HASHED]).to_pylist() if self._by_model else []
        return {row["subject"]: [row[name] for name in HASHED] for row in rows}

    @cached_property
    def _twins(self) -> Mapping[str, str]:
        """By key of a pair that repeats another one: that one."""
        return twins(self._pairs.read(["key", "identity", "content"]))

    @cached_property
    def _pairs(self) -> FinishedStage:
        return self.stage.earlier(self.pairs)

    @cached_property
    def _decisions(self) -> FinishedStage:
        return self.stage.earlier(self.decisions)
