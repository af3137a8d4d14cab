"""Finds where the two stored images of a pair differ, and asks whether each box holds what the captions say."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from PIL import Image

from twinset.generators.copied_pairs import COPIED, IMAGES, CopiedPairCandidate, copied, planned
from twinset.generators.difference_boxes.source import DifferenceBoxes
from twinset.generators.difference_boxes.things import Thing, different
from twinset.generators.image_verification.questions.asking import prepared, questions_of
from twinset.generators.image_verification.questions.vocabulary import vocabulary
from twinset.generators.image_verification.scoring import YES
from twinset.generators.image_verification.source import LONGEST
from twinset.generators.scene_graphs.relations import BATCH, LIBRARIES, parser_of
from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import canonical_json, sample_key
from twinset.manifests.errors import WrongUse
from twinset.models.engines import EngineGenerator
from twinset.models.spacy_pipelines import Pipeline, find_pipeline
from twinset.models.visual_questions.settings import Answers, Inquiry, Unanswered, VisualQuestionAnswerer
from twinset.shards.kinds.kind import Copy, Stored
from twinset.shards.kinds.pair import BoxAnswer, CopiedPair, DifferenceBox, PairRecord
from twinset.shards.kinds.samples import Rejected
from twinset.shards.media.comparison import Box, regions
from twinset.shards.media.decode import decode


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCandidate(CopiedPairCandidate):
    """A pair of the earlier stage. pair_key: its key there."""

    pair_key: str


@dataclass(frozen=True, slots=True)
class _Found:
    """What differs in a pair: by the captions, on each side, and in the pictures."""

    pictures: tuple[Image.Image, Image.Image]
    things: tuple[list[Thing], list[Thing]]
    boxes: list[Box]

    @property
    def questions(self) -> tuple[str, ...]:
        return tuple(thing.question for side in self.things for thing in side)


class DifferenceBoxGenerator(EngineGenerator[DifferenceBoxes]):
    """One pair a pair of the stage, in its order and groups."""

    version = 1
    engine: VisualQuestionAnswerer
    isolation = "process"  # spaCy holds the interpreter's lock, torch's number of threads is its process's
    candidate = BoxCandidate
    libraries: ClassVar[tuple[str, ...]] = (*LIBRARIES, "inflect", "numpy", "opencv-python", "pillow")
    numbers = tuple(DifferenceBoxes.scored)

    def device(self) -> str:
        """The engine's; the parser is a network on the CPU."""
        return super().device() or "cpu"

    def weights(self) -> Mapping[str, str]:
        return {**super().weights(), "pipeline": self._pipeline.digest, "vocabulary": vocabulary().digest}

    def plan(self) -> Iterator[BoxCandidate]:
        """All pairs, a row group at a time. Raises `WrongUse` when the stage has no images."""
        for batch in self.earlier.batches(COPIED):
            for row in batch.to_pylist():
                if not row["tar"]:
                    raise WrongUse(
                        f"{self.earlier.where}: {row['key']} has no images; name a stage whose source was given images"
                    )
                if max(len(row["caption0"]), len(row["caption1"])) > LONGEST:
                    self.excluded.add("caption-too-long", row["key"])
                    continue
                key = sample_key(self.name, *json.loads(row["identity"]))
                yield BoxCandidate(**{**planned(row), "key": key}, pair_key=row["key"])

    def make(self, candidates: Sequence[Candidate]) -> Iterator[CopiedPair | Rejected]:
        """A pair each with its boxes, or why there is none.

        Raises:
            BrokenTar: a pair is absent or broken, or its images are not those that were planned from.
            OutOfMemory: a pass of the engine does not fit.
        """
        every = cast(Sequence[BoxCandidate], candidates)
        stored = self.earlier.samples((one.tar, one.pair_key) for one in every)
        pairs = {one.key: copied(self.earlier, one, stored[one.pair_key]) for one in every}
        things = self._things(every)
        found = {one.key: self._found(one, stored[one.pair_key], things[one.key]) for one in every}
        answers = self._answers(found)
        for one in every:
            seen = found[one.key]
            boxes = seen if isinstance(seen, Rejected) else self._boxes(one.key, seen, answers)
            yield boxes if isinstance(boxes, Rejected) else _with_boxes(pairs[one.key], one, boxes)

    def _things(self, every: Sequence[BoxCandidate]) -> dict[str, tuple[list[Thing], list[Thing]]]:
        texts = list(dict.fromkeys(text for one in every for text in (one.captions0[0], one.captions1[0])))
        nlp = parser_of(self._pipeline).nlp
        with nlp.memory_zone():
            asked = dict(zip(texts, map(questions_of, nlp.pipe(map(prepared, texts), batch_size=BATCH)), strict=True))
        return {one.key: different(asked[one.captions0[0]], asked[one.captions1[0]]) for one in every}

    def _found(
        self, one: BoxCandidate, stored: Stored[PairRecord], things: tuple[list[Thing], list[Thing]]
    ) -> _Found | Rejected:
        if not any(things):
            return Rejected(one.key, "no-question", f"{one.captions0[0][:100]} / {one.captions1[0][:100]}")
        pictures = tuple(decode(stored.images[role], one.pair_key) for role in IMAGES)
        if pictures[0].size != pictures[1].size:
            sizes = [f"{picture.width} x {picture.height}" for picture in pictures]
            return Rejected(one.key, "other-size", " and ".join(sizes))
        (width, height), settings = pictures[0].size, self.source
        grain = max(1, round(settings.grain * max(width, height)))
        first, second = (np.asarray(picture) for picture in pictures)
        boxes = regions(first, second, settings.threshold, grain, settings.smallest * width * height)
        share = sum(box.area for box in boxes) / (width * height)
        if not boxes:
            return Rejected(one.key, "no-difference")
        if share > settings.largest:
            return Rejected(one.key, "difference-too-large", f"{share:.3f}")
        if len(boxes) > settings.most:
            return Rejected(one.key, "too-many-boxes", str(len(boxes)))
        return _Found((pictures[0], pictures[1]), things, boxes)

    def _answers(self, found: Mapping[str, _Found | Rejected]) -> dict[str, list[Answers]]:
        """By key, what is answered of each box, first of image 0, then of image 1."""
        inquiries = [
            (key, Inquiry(f"{key} box {number} image{side}", self._crop(picture, box), "image/png", one.questions))
            for key, one in found.items()
            if isinstance(one, _Found) and self.source.asks
            for number, box in enumerate(one.boxes)
            for side, picture in enumerate(one.pictures)
        ]
        answered: dict[str, list[Answers]] = {key: [] for key in found}
        for (key, _), said in zip(inquiries, self.engine.answers([one for _, one in inquiries]), strict=True):
            answered[key].append(said)
        return answered

    def _crop(self, picture: Image.Image, box: Box) -> bytes:
        grown, stream = box.at_least(self.source.crop, *picture.size), io.BytesIO()
        edges = (grown.left, grown.top, grown.left + grown.width, grown.top + grown.height)
        picture.crop(edges).save(stream, "PNG")
        return stream.getvalue()

    def _boxes(self, key: str, found: _Found, answers: Mapping[str, list[Answers]]) -> list[DifferenceBox] | Rejected:
        if not (said := answers[key]):
            return [_labelled(box, found.things, ()) for box in found.boxes]
        if (lacking := next((one for one in said if isinstance(one, Unanswered)), None)) is not None:
            return Rejected(key, lacking.reason, lacking.detail)
        sides = [side for side, things in enumerate(found.things) for _ in things]
        kept = []
        for number, box in enumerate(found.boxes):
            yes0, yes1 = (cast(list[float], one) for one in said[2 * number : 2 * number + 2])
            told = tuple(
                BoxAnswer(question=asked, caption=side, yes0=first, yes1=second)
                for asked, side, first, second in zip(found.questions, sides, yes0, yes1, strict=True)
            )
            if _holds(told):
                kept.append(_labelled(box, found.things, told))
        return kept or Rejected(key, "box-does-not-hold", f"{len(found.boxes)} boxes; {found.questions[0][:200]}")

    @cached_property
    def _pipeline(self) -> Pipeline:
        return find_pipeline(self.source.pipeline)


def _holds(answers: Sequence[BoxAnswer]) -> bool:
    """Whether each image shows all that its caption names, and the other one does not."""
    for side in (0, 1):
        both = [(one.yes0, one.yes1)[:: -1 if side else 1] for one in answers if one.caption == side]
        if both and not (all(own >= YES for own, _ in both) and any(other < YES for _, other in both)):
            return False
    return True


def _labelled(box: Box, things: tuple[list[Thing], list[Thing]], answers: tuple[BoxAnswer, ...]) -> DifferenceBox:
    first, second = (", ".join(thing.label for thing in side) for side in things)
    return DifferenceBox(
        left=box.left,
        top=box.top,
        width=box.width,
        height=box.height,
        label0=first,
        label1=second,
        difference=f"image 0: {first or f'no {second}'}; image 1: {second or f'no {first}'}",
        answers=answers,
    )


def _with_boxes(pair: CopiedPair, one: BoxCandidate, boxes: Sequence[DifferenceBox]) -> CopiedPair:
    """The pair with its boxes in the JSON, and with the numbers of the largest in its scores."""
    first = boxes[0]
    places = {name: float(getattr(first, name)) for name in ("left", "top", "width", "height")}
    scores = {**pair.scores, "boxes": float(len(boxes)), **places}
    changed: dict[str, Any] = {"boxes": tuple(boxes), "scores": scores, "group": one.group, "split": one.split}
    record = pair.record.model_copy(update={**changed, **one.terms.columns})
    fields = {**pair.copy.fields, "json": canonical_json(record.model_dump(mode="json"))}
    return replace(pair, record=record, scores=scores, copy=Copy(fields, pair.copy.images))
