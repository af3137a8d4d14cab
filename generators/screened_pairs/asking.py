"""Asks people whether to keep each pair of a stage, as EqBen did for EQ-GEBC and EQ-SD (sections 4.2, B.2, B.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from twinset.generators.decisions.source import Decisions
from twinset.generators.papers import EQBEN
from twinset.manifests.source import Reference, SourceSettings, StageName

SCREENED_OUT: Mapping[str, str] = {"screened-out": "people looked at the pair and dropped it"}


class PairScreening(Decisions):
    """Keep or drop each pair of a stage.

    pairs: the stage. Simulated annotators take every pair for a good one, but for their errors.
    """

    kind: Literal["pair-screening"]
    pairs: StageName

    generator = "twinset.generators.screened_pairs.screening:PairScreeningGenerator"
    paper = EQBEN
    reference = Reference("pairs of an earlier stage")
    reasons: ClassVar[Mapping[str, str]] = {**Decisions.reasons, **SCREENED_OUT}

    def misfit(self, earlier: SourceSettings) -> str:
        """As `manifests.source.SourceSettings.misfit`."""
        if earlier.makes != "pair":
            return f"people are asked about pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""
