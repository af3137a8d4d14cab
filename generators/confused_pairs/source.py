"""Settings of pairs that one encoder confuses and another does not."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from pydantic import Field

from twinset.manifests.references import bibtex
from twinset.manifests.source import Need, Reference, SourceSettings, StageName
from twinset.models.device import check_installed
from twinset.shards.contracts import Source


class ConfusedPairs(Source):
    """Two photographs with their captions that one encoder finds alike and another apart (MMVP, section 2).

    images: the stage of ``image-captions`` that has the photographs, or the folder of a finished one. alike, apart: two
    stages of ``image-features`` of it, one an encoder. above: cosines in the first are above this; below: those in the
    second are below this. Pairs with the largest difference come first; those that photographs connect are 64 at most.
    uses_of_image: pairs that a photograph is in, at most. threads: of the search; 0: one a core. licence: of captions
    and images.
    """

    kind: Literal["confused-pairs"]
    images: StageName
    alike: StageName
    apart: StageName
    above: float = Field(default=0.95, gt=-1, lt=1)
    below: float = Field(default=0.6, gt=-1, le=1)
    uses_of_image: int = Field(default=2, ge=1)
    threads: int = Field(default=0, ge=0, le=1024)
    licence: str

    execution = ("threads",)
    generator = "twinset.generators.confused_pairs.generator:ConfusedPairGenerator"
    makes = "pair"
    reference = Reference("photographs with captions")
    paper = Reference("MMVP", "https://arxiv.org/abs/2401.06209", bibtex("tong2024mmvp"))
    group = "cluster"
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes == "image-text" or earlier.kind == "image-features":
            return ""
        return (
            f"{earlier.kind} gives neither photographs with captions nor features; name stages of image-captions and "
            "image-features"
        )

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            check_installed(key, ("torch",), "models")
