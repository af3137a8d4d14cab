"""Settings of pairs that one encoder confuses and another does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny

from twinset.contracts.doors import OfKind
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need, SourceSettings, StageName
from twinset.generators import negative_captions
from twinset.models.device import check_installed
from twinset.models.engines import EngineSettings, EngineSource
from twinset.models.language_models.settings import LANGUAGE_MODELS


class OwnCaptions(EngineSettings):
    """What people said of each photograph."""

    kind: Literal["own"] = "own"


class ConfusedPairs(EngineSource):
    """Two photographs with their captions that one encoder finds alike and another apart (MMVP, section 2).

    images: the stage of ``image-captions`` that has the photographs, or the folder of a finished one. alike, apart: two
    stages of ``image-features`` of it, one an encoder. above: cosines in the first are above this; below: those in the
    second are below this. Pairs with the largest difference come first; those that photographs connect are 64 at most.
    uses_of_image: pairs that a photograph is in, at most. threads: of the search; 0: one a core.
    engine: whose captions a pair has, the photographs' own or a language model's, which reads those of both and writes
    one of each that is false of the other (NaturalBench asks for questions so). licence: of captions and images.
    """

    kind: Literal["confused-pairs"]
    images: StageName
    alike: StageName
    apart: StageName
    above: float = Field(default=0.95, gt=-1, lt=1)
    below: float = Field(default=0.6, gt=-1, le=1)
    uses_of_image: int = Field(default=2, ge=1)
    threads: int = Field(default=0, ge=0, le=1024)
    engine: Annotated[SerializeAsAny[EngineSettings], OfKind(LANGUAGE_MODELS, {"own": OwnCaptions})] = OwnCaptions()
    licence: str = ""

    execution = ("threads",)
    generator = "twinset_extras.confused_pairs.writing:generator_of"
    makes = "pair"
    paper = Reference("MMVP", "https://arxiv.org/abs/2401.06209", bibtex("tong2024mmvp"))
    group = "cluster"
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = {
        **reasons_beside(__file__, "confused-pairs"),
        **reasons_beside(negative_captions.__file__, "answers"),
    }

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

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            check_installed(key, ("torch",), "models")
