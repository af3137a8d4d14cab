"""The settings of the boxes where the images of a pair differ, and what a card says of them (Img-Diff)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np
from PIL import Image
from pydantic import Field, SerializeAsAny, model_validator

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, sample_key
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PairRecord
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, SourceSettings, StageName
from twinset.generators.copied_pairs import COPIED, IMAGES, CopiedPair, CopiedPairCandidate, copied, planned
from twinset.generators.image_verification.questions import LONGEST, YES, Inquiry, QuestionSource
from twinset.generators.reasons import reasons_beside
from twinset.models.device import check_opencv
from twinset.models.language_models.answers import Answer, Request, ShownImage
from twinset.models.language_models.settings import LANGUAGE_MODELS, SEEING, LanguageModelSettings
from twinset.shards.media.decode import decode
from twinset_extras.comparison import Box, regions
from twinset_extras.image_questions.questions import FactQuestion, distinguishing
from twinset_extras.image_questions.settings import Facts


class Unasked(LanguageModelSettings):
    """No model: what boxes hold is read from the captions, and nothing checks it."""

    kind: Literal["unasked"]

    sees = True
    worker = f"{__name__}:Nobody"


ANSWERERS = replace(LANGUAGE_MODELS, beside={"unasked": Unasked})


class Nobody:
    """An engine (`models.language_models.answers.LanguageModel`) that is asked nothing."""

    micro_batch, threads = 64, 1

    def __init__(self, settings: Unasked) -> None:
        pass

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Of no request."""
        return []

    def device(self) -> None:
        """None."""

    def weights(self) -> Mapping[str, str]:
        """None."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        """Itself."""
        return self


SIDES = (0, 1)


#: First words of attributes that say where something is, which a box by itself does not show.
_PLACES = frozenset(("in", "on", "at", "to", "by", "near", "behind", "under", "above", "below"))


@dataclass(frozen=True, slots=True)
class Label:
    """What a box shows in one image. caption: 0 or 1. text: such as ``red car``. question: whether it is there."""

    caption: int
    text: str
    question: str


def labels_of(asked: Sequence[Sequence[FactQuestion]]) -> list[Label]:
    """Objects that one caption alone names; attributes where no object differs. asked: questions of both captions."""
    for kind in ("entity", "attribute"):
        labels = [
            Label(side, " ".join(reversed(question.words)), question.question)
            for side in SIDES
            for question in asked[side]
            if question.kind == kind and question.meaning in distinguishing(asked[side], asked[1 - side])
            if kind == "entity" or question.words[1].split()[0] not in _PLACES
        ]
        if labels:
            return labels
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCandidate(CopiedPairCandidate):
    """A pair of the earlier stage. pair_key: its key there."""

    pair_key: str


@dataclass(frozen=True, slots=True)
class _Found:
    """What differs in a pair: by the captions, and in the pictures."""

    pictures: Sequence[Image.Image]
    labels: list[Label]
    boxes: list[Box]


def _boxes(located: _Found, answers: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Boxes as JSON has them, without those that the model refuted. answers: of each inquiry; empty for none.

    label0, label1: what each caption alone says is there; empty for none. difference: both in one text.
    """
    label0, label1 = (", ".join(label.text for label in located.labels if label.caption == side) for side in SIDES)
    boxes = []
    for number, box in enumerate(located.boxes):
        answered: tuple[dict[str, Any], ...] = ()
        if answers:
            yes0, yes1 = answers[2 * number : 2 * number + 2]
            answered = tuple(
                {"question": (text := label.question), "caption": label.caption, "yes0": yes0[text], "yes1": yes1[text]}
                for label in located.labels
            )
        if _holds(answered):
            difference = f"image 0: {label0 or f'no {label1}'}; image 1: {label1 or f'no {label0}'}"
            labels = {"label0": label0, "label1": label1, "difference": difference}
            boxes.append({**asdict(box), **labels, "answers": answered})
    return boxes


def _holds(answers: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each image shows all that its caption names, and the other one does not."""
    for side in SIDES:
        shown = [(reply["yes0"], reply["yes1"])[:: -1 if side else 1] for reply in answers if reply["caption"] == side]
        if shown and not (all(own >= YES for own, _ in shown) and any(opposite < YES for _, opposite in shown)):
            return False
    return True


def _with_boxes(pair: CopiedPair, boxes: Sequence[Mapping[str, Any]]) -> CopiedPair:
    """The pair with its boxes in the JSON, and with the numbers of the largest in its scores."""
    places = {name: float(boxes[0][name]) for name in ("left", "top", "width", "height")}
    scores = {**pair.scores, "boxes": float(len(boxes)), **places}
    changed = {**json.loads(pair.fields["json"]), "boxes": boxes, "scores": scores}
    return replace(pair, scores=scores, fields={**pair.fields, "json": canonical_json(changed)})


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
    engine: Annotated[SerializeAsAny[LanguageModelSettings], ANSWERERS, SEEING]
    threshold: float = Field(default=12.0, gt=0, le=255)
    grain: float = Field(default=0.01, gt=0, le=0.1)
    smallest: float = Field(default=0.002, gt=0, lt=1)
    largest: float = Field(default=0.5, gt=0, le=1)
    most: int = Field(default=5, ge=1, le=100)
    questions: Facts = Facts()
    crop: int = Field(default=64, ge=1, le=4096)
    licence: str = ""

    makes = "pair"
    copies = "pairs"
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

    def misfit(self, earlier: SourceSettings) -> str:
        if earlier.makes != "pair":
            return f"boxes are of pairs, and {earlier.kind} makes {earlier.makes}s; name a stage of pairs"
        return ""

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "media" in needs:
            check_opencv(key)

    version = 1
    candidate = BoxCandidate
    numbers = tuple(scored)

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]  # of a class as a rule
        return (*super().libraries, "numpy", "opencv-python", "pillow")

    def plan(self) -> Iterator[BoxCandidate]:
        """All pairs, a row group at a time. Raises `WrongUse` when the stage has no images."""
        for row in self.earlier().pictured_rows(COPIED):
            if max(len(row["caption0"]), len(row["caption1"])) > LONGEST:
                self.excluded.add("caption-too-long", row["key"])
                continue
            key = sample_key(self.stage.name, *json.loads(row["identity"]))
            yield BoxCandidate(**{**planned(row), "key": key}, pair_key=row["key"])

    def make(self, candidates: Sequence[Candidate]) -> Iterator[CopiedPair | Rejected]:
        """A pair each with its boxes, or why there is none.

        Raises:
            BrokenTar: a pair is absent or broken, or its images are not those that were planned from.
            OutOfMemory: a pass of the engine does not fit.
        """
        every = cast(Sequence[BoxCandidate], candidates)
        stored = self.earlier().samples((pair.tar, pair.pair_key) for pair in every)
        pairs = {pair.key: copied(self.earlier(), pair, stored[pair.pair_key]) for pair in every}
        questions = self.questions_about(text for pair in pairs.values() for text in pair.described().values())
        located = {pair.key: self._found(pair.key, stored[pair.pair_key], questions) for pair in every}
        seen = {key: place for key, place in located.items() if isinstance(place, _Found) and self.asks}
        answers = self.answers({key: list(self._inquiries(key, place)) for key, place in seen.items()})
        for key, pair in pairs.items():
            place, answered = located[key], answers.get(key, [])
            if isinstance(place, Rejected):
                yield place
            elif isinstance(answered, Rejected):
                yield answered
            elif boxes := _boxes(place, answered):
                yield _with_boxes(pair, boxes)
            else:
                detail = f"{len(place.boxes)} boxes; {place.labels[0].question[:200]}"
                yield Rejected(key, "box-does-not-hold", detail)

    def _found(
        self, key: str, stored: Stored[PairRecord], questions: Mapping[str, Sequence[FactQuestion]]
    ) -> _Found | Rejected:
        captions, settings = stored.texts.values(), self
        if not (labels := labels_of([questions[caption] for caption in captions])):
            return Rejected(key, "no-question", " / ".join(caption[:100] for caption in captions))
        pictures = [decode(stored.images[role], stored.key) for role in IMAGES]
        width, height = pictures[0].size
        if pictures[1].size != (width, height):
            sizes = [f"{picture.width} x {picture.height}" for picture in pictures]
            return Rejected(key, "other-size", " and ".join(sizes))
        grain = max(1, round(settings.grain * max(width, height)))
        first, second = map(np.asarray, pictures)
        boxes = regions(first, second, settings.threshold, grain, settings.smallest * width * height)
        share = sum(box.area for box in boxes) / (width * height)
        if not boxes:
            return Rejected(key, "no-difference")
        if share > settings.largest:
            return Rejected(key, "difference-too-large", f"{share:.3f}")
        if len(boxes) > settings.most:
            return Rejected(key, "too-many-boxes", str(len(boxes)))
        return _Found(pictures, labels, boxes)

    def _inquiries(self, key: str, located: _Found) -> Iterator[Inquiry]:
        """Box by box, first of image 0, then of image 1."""
        questions = tuple(label.question for label in located.labels)
        for number, box in enumerate(located.boxes):
            for side, picture in enumerate(located.pictures):
                yield ShownImage(self._crop(picture, box), key=f"{key} box {number} image{side}"), questions

    def _crop(self, picture: Image.Image, box: Box) -> Image.Image:
        grown = box.at_least(self.crop, *picture.size)
        return picture.crop((grown.left, grown.top, grown.left + grown.width, grown.top + grown.height))
