"""The settings of the boxes where the images of a pair differ, and what a card says of them (Img-Diff)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny, model_validator

from twinset.contracts.doors import OfKind
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Need, SourceSettings, StageName
from twinset.generators.image_verification.questions import QuestionSource
from twinset.models.device import check_opencv
from twinset.models.visual_questions.settings import QUESTION_ANSWERERS, Answers, Inquiry, QuestionAnswererSettings
from twinset_extras.image_questions.settings import Facts


class Unasked(QuestionAnswererSettings):
    """No model: what boxes hold is read from the captions, and nothing checks it."""

    kind: Literal["unasked"]

    worker = f"{__name__}:Nobody"
    reasons: ClassVar[Mapping[str, str]] = {}


class Nobody:
    """An engine (`models.visual_questions.settings.VisualQuestionAnswerer`) that answers nothing."""

    micro_batch, threads = 64, 1

    def __init__(self, settings: Unasked) -> None:
        pass

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        """As many empty lists."""
        return [[] for _ in inquiries]

    def device(self) -> None:
        """None."""

    def weights(self) -> Mapping[str, str]:
        """None."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        """Itself."""
        return self


class DifferenceBoxes(QuestionSource):
    """The pairs of a stage with boxes around what differs between their images, and what is there in each.

    pairs: the stage that made them, or the folder of a finished one; images, captions and split stay. engine: what
    is asked whether a box holds what the captions say; ``kind: unasked`` for nothing. threshold: mean difference of
    colours (0-255) from which places differ. grain: radius of the windows that are compared, as a share of the
    longer side (0-1). smallest: share of the picture (0-1) that a box must take; largest: that all may take. most:
    boxes of a pair. questions: how labels are read off the captions. crop: pixels that the side of a crop has at
    least when it is asked about, where the picture has them.
    licence: unused: each pair keeps its own.
    """

    kind: Literal["difference-boxes"]
    pairs: StageName
    engine: Annotated[SerializeAsAny[QuestionAnswererSettings], OfKind(QUESTION_ANSWERERS, {"unasked": Unasked})]
    threshold: float = Field(default=12.0, gt=0, le=255)
    grain: float = Field(default=0.01, gt=0, le=0.1)
    smallest: float = Field(default=0.002, gt=0, lt=1)
    largest: float = Field(default=0.5, gt=0, le=1)
    most: int = Field(default=5, ge=1, le=100)
    questions: Facts = Facts()
    crop: int = Field(default=64, ge=1, le=4096)
    licence: str = ""

    generator = "twinset_extras.difference_boxes.generator:DifferenceBoxGenerator"
    makes = "pair"
    paper = Reference("Img-Diff", "https://arxiv.org/abs/2408.04594", bibtex("jiao2025imgdiff"))
    verb = "found in"
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "difference-boxes")
    scored: ClassVar[Mapping[str, str]] = {
        "boxes": "places where the images differ",
        "left": "pixels to the left of the largest of these boxes",
        "top": "pixels above it",
        "width": "its width in pixels",
        "height": "its height in pixels",
    }

    @model_validator(mode="after")
    def _some_box_fits(self) -> DifferenceBoxes:
        if self.smallest > self.largest:
            raise ValueError(f"smallest is {self.smallest} and largest {self.largest}: no box is both; swap them")
        return self

    @property
    def asks(self) -> bool:
        """Whether a model is asked."""
        return not isinstance(self.engine, Unasked)

    @property
    def copies(self) -> str | None:
        return self.pairs

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes != "pair":
            return f"boxes are of pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "media" in needs:
            check_opencv(key)
