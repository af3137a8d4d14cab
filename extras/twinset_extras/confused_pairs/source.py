"""Settings of pairs that one encoder confuses and another does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import SourceSettings, StageName
from twinset.shards.contracts import Source


class ConfusedPairs(Source):
    """Two photographs with their captions that one encoder finds alike and another apart (MMVP, section 2).

    images: the stage of ``image-captions`` that has the photographs, or the folder of a finished one. alike, apart: two
    stages of ``image-features`` of it, one an encoder. above: cosines in the first are above this; below: those in the
    second are below this. Pairs with the largest difference come first; those that photographs connect are 64 at most.
    uses_of_image: pairs that a photograph is in, at most. licence: of captions and images.
    """

    kind: Literal["confused-pairs"]
    images: StageName
    alike: StageName
    apart: StageName
    above: float = Field(default=0.95, gt=-1, lt=1)
    below: float = Field(default=0.6, gt=-1, le=1)
    uses_of_image: int = Field(default=2, ge=1)
    licence: str = ""

    generator = "twinset_extras.confused_pairs.generator:ConfusedPairGenerator"
    makes = "pair"
    paper = Reference("MMVP", "https://arxiv.org/abs/2401.06209", bibtex("tong2024mmvp"))
    group = "cluster"
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "confused-pairs")
    scored: ClassVar[Mapping[str, str]] = {
        "alike": "cosine of both photographs' features by the encoder that finds them alike",
        "apart": "cosine of both photographs' features by the encoder that tells them apart",
    }

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes == "image-text" or earlier.kind == "image-features":
            return ""
        return (
            f"{earlier.kind} gives neither photographs with captions nor features; name stages of image-captions and "
            "image-features"
        )
