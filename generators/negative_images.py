"""Images of negative captions, drawn by an engine (BiVLC, section 3.2; TROHN-Img, section 5.1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import generator_for, sample_key
from twinset.contracts.kinds.samples import Frame, MediaFile, Rejected
from twinset.contracts.licences.names import known_licence
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.source import StageName
from twinset.generators.licences import DerivingTerms
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.negative_captions.prompts import SUFFIX
from twinset.generators.papers import BIVLC
from twinset.generators.text_pairs import TextPair, named_once
from twinset.models.engines import EngineSource
from twinset.models.image_engine import Drawn, ImageEngine, Request

NEGATIVE: Literal["negative_caption"] = "negative_caption"
_TOLD = ("caption_id", "image_id", "image", "type", "subtype", "prompt", "side", "number")  # in the provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCandidate(NegativeCaption):
    """One image of a caption.

    side: ``negative_caption`` or ``caption``, which it is drawn from. number: from 0, of the images of this caption.
    prompt: of this side. scene: what its seed comes from, equal for both sides.
    """

    prompt: str
    side: str
    number: int
    scene: str

    @property
    def sides(self) -> tuple[str, str]:
        """The caption that it is drawn from, and the other one."""
        sides = self.negative_caption, self.caption
        return sides if self.side == NEGATIVE else sides[::-1]


class NegativeImages(DerivingTerms, EngineSource):
    """An image of each negative caption, which should show what this caption says and not what the original one does.

    negatives: the stage of negative captions with their prompts, or the folder of a finished one. engine: what draws.
    images_per_caption: how many images of each negative; 4 for BiVLC, of which people choose, 1 for TROHN-Img.
    sides: which captions are drawn. With ``caption`` one image of the original caption too, from the seed of the first
    image of the negative one: for captions without a photo. suffix: of the prompts of original captions.
    licence: of the images; the engine's unless the recipe says otherwise, and with it that of captions and photos.
    """

    kind: Literal["negative-images"]
    negatives: StageName
    engine: ImageEngine
    images_per_caption: int = Field(default=1, ge=1, le=64)
    sides: Annotated[tuple[Literal["caption", "negative_caption"], ...], AfterValidator(named_once)] = Field(
        default=(NEGATIVE,), min_length=1
    )
    suffix: str = SUFFIX
    licence: str = ""

    version = 2
    candidate = ImageCandidate
    makes = "text-pair"
    paper = BIVLC
    group = "negative caption"
    verb = "drawn from"
    passes = 16  # micro-batches at a time: the engine draws one while the last one is decoded and encoded
    card_template = Path(__file__).with_name("negative_images.md.j2")

    @property
    def terms(self) -> Terms:
        """As `StatedTerms.terms`, with the engine's licence where the recipe states none."""
        return super().terms._replace(licence=self.licence or known_licence(self.engine.licence) or "")

    def plan(self) -> Iterator[ImageCandidate]:
        """Images in the order of the table, which is read a row group at a time."""
        columns = ["identity", *TERMS, *COLUMNS.names, "prompt"]
        for batch in self.earlier().batches(columns):
            for row in batch.to_pylist():
                identity, shows = json.loads(row.pop("identity")), (Terms(*map(row.pop, TERMS)),)
                group = sample_key(self.stage.name, *identity)
                prompts = {NEGATIVE: row.pop("prompt"), "caption": row["caption"].replace(".", "") + self.suffix}
                for side in self.sides:
                    for number in range(self.images_per_caption if side == NEGATIVE else 1):
                        yield ImageCandidate(
                            **self.identified(*identity, side, number, group=group, shows=shows),
                            side=side,
                            number=number,
                            scene=sample_key(self.stage.name, *identity, number),
                            prompt=prompts[side],
                            **row,
                        )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TextPair | Rejected]:
        """A text pair each, or why nothing was drawn; raises what `ImageGenerator.draw` raises."""
        planned = cast(Sequence[ImageCandidate], candidates)
        drawn = self.worker.draw([Request(pair.key, pair.sides[0], pair.prompt, self._seed(pair)) for pair in planned])
        for candidate, result in zip(planned, drawn, strict=True):
            yield result if isinstance(result, Rejected) else self._pair(candidate, result)

    def _seed(self, candidate: ImageCandidate) -> int:
        # Signed 64 bits hold it, which is what Parquet and JSON readers take a whole number for.
        return int(generator_for(self.stage.seed, self.stage.name, candidate.scene).integers(2**63))

    def _pair(self, candidate: ImageCandidate, drawn: Drawn) -> TextPair:
        first, *further_sources = drawn.sources or (MediaFile(f"drawn by {self.engine.kind}", 0, ""),)
        recorded = {name: getattr(candidate, name) for name in _TOLD}
        return TextPair(
            **candidate.placed,
            image=Frame(candidate.key, drawn.pixels, -1.0, first),
            caption=candidate.sides[0],
            negative_caption=candidate.sides[1],
            type=candidate.type,
            subtype=candidate.subtype,
            provenance={**recorded, "seed": self._seed(candidate), "engine": dict(drawn.provenance)},
            sources=tuple(further_sources),
        )
