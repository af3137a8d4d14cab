"""The settings of the human baseline: how many pairs people are asked about."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from twinset.generators.decisions.source import Decisions
from twinset.manifests.source import Reference, SourceSettings, StageName


class HumanBaseline(Decisions):
    """Four questions about each of some pairs: which caption belongs to either image, which image to either caption.

    pairs: a stage or subset of pairs. sample: how many of its pairs are asked about, chosen by a hash of seed and key;
    all where there are fewer.
    """

    kind: Literal["human-baseline"]
    pairs: StageName
    sample: int = Field(default=500, ge=1)

    generator = "twinset.generators.human_baseline.generator:HumanBaselineGenerator"
    reference = Reference("pairs of an earlier stage")
    group = "pair"
    reads_subsets = True

    def misfit(self, earlier: SourceSettings) -> str:
        """As `manifests.source.SourceSettings.misfit`."""
        if earlier.makes != "pair":
            return f"people are asked about pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""
