"""Questions about the images of negative captions: which is the best, or none, and whether it fits the original caption
too (BiVLC, section 3.1: ``image-choice`` is step 3, ``image-ambiguity`` step 4)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.decisions.question import UNSCORED, Decision, TaskCandidate
from twinset.generators.decisions.questions import BestImage, FitsCaption
from twinset.generators.decisions.source import Decisions
from twinset.generators.generated_pairs.joining import NONE as NO_IMAGE
from twinset.generators.generated_pairs.joining import (
    ImagePlace,
    Images,
    best_images,
    decided_images,
    first_images,
    images_of,
    scores_of,
)
from twinset.generators.negative_captions.kinds import COLUMNS, EVERY_KIND, kind_name
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder

MOST_IMAGES = 9  # one key each
GENERATED = 1  # number of the generated image in a task of `ImageAmbiguity`


class ImageDecisions(Decisions):
    """A task a negative caption, with its identity.

    negatives: the stage of negative captions. images: the stage of images that were generated from it. verified: the
    stage that scored these; tasks with higher scores are asked first. kinds: of negative captions that are asked about;
    all when absent.
    """

    negatives: StageName
    images: StageName
    verified: StageName | None = None
    kinds: tuple[str, ...] | None = Field(default=None, min_length=1)

    group = "negative caption"
    reasons: ClassVar[Mapping[str, str]] = {**Decisions.reasons, **reasons_beside(__file__, "both")}

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if unknown := [kind for kind in kinds or () if kind not in EVERY_KIND]:
            raise ValueError(f"there is no kind {unknown[0]!r}; name some of {', '.join(EVERY_KIND)}")
        return kinds

    @property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.images)

    @property
    def _verified(self) -> FinishedStage | None:
        return None if self.verified is None else self.stage.earlier(self.verified)

    @cached_property
    def _captions(self) -> pa.Table:
        """All negative captions."""
        return self.stage.earlier(self.negatives).read(["key", "identity", *COLUMNS.names])

    @cached_property
    def _images(self) -> Images:
        """Their images."""
        return images_of(self.pictured, self._captions, "negative_caption")

    @cached_property
    def _scores(self) -> npt.NDArray[np.float64]:
        """How well each image shows its caption, NaN where that is not known."""
        return scores_of(self._images, self._verified)[0]

    def _best_score(self, images: Sequence[int]) -> float:
        """The highest score among some of the images; `UNSCORED` where none has one."""
        return max((float(score) for score in self._scores[[*images]] if not np.isnan(score)), default=UNSCORED)

    def _wanted(self, left_out: LeftOut) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows of negative captions of the kinds that are asked about, with their numbers."""
        for number, row in enumerate(self._captions.to_pylist()):
            row["place"] = f"{row['key']} ({row['caption_id'][:100]})"
            if self.kinds is None or kind_name(row["type"], row["subtype"]) in self.kinds:
                yield number, row
            else:
                left_out.add("other-kind", row["place"])

    def _task(
        self, row: Mapping[str, str], question: str, text: str, images: Sequence[ImagePlace], scored: Sequence[int]
    ) -> TaskCandidate:
        """The task that asks about a negative caption.

        Args:
            row: of the negative caption.
            question, text, images: that are shown.
            scored: numbers of the images whose best score is the task's priority.
        """
        key = sample_key(self.stage.name, *json.loads(row["identity"]))
        names, tars, sha256s = zip(*images, strict=True)
        return TaskCandidate(
            key=key,
            group=key,
            split=self.stage.split,
            identity=row["identity"],
            question=question,
            texts=(text,),
            images=names,
            image_tars=tars,
            image_sha256s=sha256s,
            subject=row["key"],
            kind_name=kind_name(row["type"], row["subtype"]),
            priority=self._best_score(scored),
        )


class ImageChoice(ImageDecisions):
    """People choose the best image of each negative caption, or none.

    least: captions whose best image scores less in ``verified`` are not asked; all are when absent.
    """

    kind: Literal["image-choice"]
    least: float | None = Field(default=None, gt=0, le=1)

    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-choice")}

    @model_validator(mode="after")
    def _has_scores(self) -> ImageChoice:
        if self.least is not None and self.verified is None:
            raise ValueError("least needs the scores of a stage; name it with verified")
        return self

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        by_caption, places = defaultdict[int, list[int]](list), self._images.places()
        for image in np.lexsort((self._images.numbers, self._images.negatives)).tolist():
            by_caption[int(self._images.negatives[image])].append(image)
        if (most := max(map(len, by_caption.values()), default=0)) > MOST_IMAGES:
            raise WrongUse(
                f"{self.stage.name}: {most} images of a caption, and people choose among at most {MOST_IMAGES}; set "
                f"images_per_caption of {self.images}"
            )
        for number, row in self._wanted(left_out):
            images = by_caption[number]
            if not images:
                left_out.add("no-image", row["place"])
            elif self.least is not None and self._best_score(images) < self.least:
                left_out.add("not-verified", row["place"])
            else:
                shown = [places[image] for image in images]
                yield self._task(row, BestImage.name, row["negative_caption"], shown, images)

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return int(decision.choice)


class ImageAmbiguity(ImageDecisions):
    """People say which image fits the original caption: the photo, the generated one, or both.

    photos: folder of the photos; without it, images that were generated from the original captions are shown.
    choices: the stage ``image-choice`` that chose; without it the image with the highest score is asked about.
    """

    kind: Literal["image-ambiguity"]
    photos: Annotated[Location, Place("folder", "media")] | None = None
    choices: StageName | None = None

    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-ambiguity")}

    @cached_property
    def photo_folder(self) -> ImageFolder | None:
        return None if self.photos is None else ImageFolder(self.photos)

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        captions, places = self._captions, self._images.places()
        if self.choices is not None:
            chosen, lacking = decided_images(self._images, captions, self.stage.earlier(self.choices)), "not-chosen"
        else:
            chosen = best_images(self._images, len(captions), self._verified, None, False).image
            lacking = "no-image"
        originals: list[ImagePlace] | None = None
        if self.photos is None:
            images = images_of(self.pictured, captions, "caption")
            # `NO_IMAGE` is the last place.
            every = [*images.places(), ("", "", "")]
            originals = [every[place] for place in first_images(images, len(captions)).tolist()]
        for number, row in self._wanted(left_out):
            image = int(chosen[number])
            photo = (row["image"] or row["image_id"], "", "") if originals is None else originals[number]
            if image == NO_IMAGE:
                left_out.add(lacking, row["place"])
            elif not photo[0]:
                left_out.add("no-photo" if originals is None else "no-image", row["place"])
            else:
                yield self._task(row, FitsCaption.name, row["caption"], (photo, places[image]), [image])

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return GENERATED
