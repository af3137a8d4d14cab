"""The settings of pairs that people kept, and what their card says."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from twinset.generators.decisions.questions.keep_pair import DROP, KeepPair
from twinset.generators.screened_pairs.pair_screening import SCREENED_OUT
from twinset.manifests.markdown import table
from twinset.manifests.source import Reference, SourceSettings, StageName
from twinset.shards.contracts import Source

REPORT = "screening.json"


class ScreenedPairs(Source):
    """The pairs of a stage without those that people dropped.

    pairs: the stage that made them. decisions: the stage of `pair-screening` that asked people about them. licence:
    unused: each pair keeps that of its own source.
    """

    kind: Literal["screened-pairs"]
    pairs: StageName
    decisions: StageName
    licence: str = "as each pair says"

    generator = "twinset.generators.screened_pairs.generator:ScreenedPairGenerator"
    makes = "pair"
    reference = Reference("pairs of an earlier stage")
    verb = "kept from"
    reports = (REPORT,)
    reasons: ClassVar[Mapping[str, str]] = {
        **SCREENED_OUT,
        "undecided": "too few people looked at the pair, or they did not agree",
    }

    @property
    def copies(self) -> str | None:
        """As `manifests.source.SourceSettings.copies`."""
        return self.pairs

    def misfit(self, earlier: SourceSettings) -> str:
        """As `manifests.source.SourceSettings.misfit`."""
        if earlier.makes not in ("pair", "table"):
            return f"people keep or drop pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """How many pairs were shown, kept and dropped, and why."""
        if (found := reports.get(REPORT)) is None:
            return ""
        who = "**Simulated annotators, not people**, judged" if found["simulated"] else "People judged"
        lost = sum(found["dropped"].values())
        again = found.get("duplicates", 0)  # absent from what an earlier version wrote
        repeated = f" {again:,} repeat the images and captions of another one." if again else ""
        text = (
            f"Of {found['planned']:,} planned pairs {found['made']:,} were made.{repeated} {who} {found['shown']:,} of "
            f"them and kept {found['kept']:,}; {lost:,} were dropped and {found['undecided']:,} left undecided. What "
            "is kept is copied byte by byte.\n"
        )
        if not lost:
            return text
        said = {**KeepPair.reasons, DROP: "no reason given"}
        rows = [
            [said.get(why, why), f"{count:,}", f"{count / found['shown']:.1%}"]
            for why, count in found["dropped"].items()
        ]
        return f"{text}\n{table(['dropped because', 'pairs', 'of those shown'], rows)}"
