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
    images_of,
    scores_of,
)
from twinset.generators.negative_captions.kinds import COLUMNS, kind_name
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder

MOST_IMAGES = 9  # one key each
GENERATED = 1  # number of the generated image in a task of `ImageAmbiguity`


class ImageDecisions(Decisions):
    """A task a negative caption, with its identity.

    negatives: the stage of negative captions. images: the stage of images that were generated from it. verified: the
    stage that scored these; tasks with higher scores are asked first.
    """

    negatives: StageName
    images: StageName
    verified: StageName | None = None

    group = "negative caption"
    reasons: ClassVar[Mapping[str, str]] = {**Decisions.reasons, **reasons_beside(__file__, "both")}

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

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows of negative captions, with their numbers; ``place`` names them in messages."""
        for number, row in enumerate(self._captions.to_pylist()):
            yield number, {**row, "place": f"{row['key']} ({row['caption_id'][:100]})"}

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
    """People choose the best image of each negative caption, or none."""

    kind: Literal["image-choice"]

    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-choice")}

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        by_caption, places = defaultdict[int, list[int]](list), self._images.places()
        for image in np.lexsort((self._images.numbers, self._images.negatives)).tolist():
            by_caption[int(self._images.negatives[image])].append(image)
        if (most := max(map(len, by_caption.values()), default=0)) > MOST_IMAGES:
            raise WrongUse(
                f"{self.stage.name}: {most} images of a caption, and people choose among at most {MOST_IMAGES}; set "
                f"images_per_caption of {self.images}"
            )
        for number, row in self._rows():
            images = by_caption[number]
            if not images:
                left_out.add("no-image", row["place"])
            else:
                shown = [places[image] for image in images]
                yield self._task(row, BestImage.name, row["negative_caption"], shown, images)

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return int(decision.choice)


class ImageAmbiguity(ImageDecisions):
    """People say which image fits the original caption: the photo, the generated one, or both.

    photos: folder of the photos.
    choices: the stage ``image-choice`` that chose; without it the image with the highest score is asked about.
    """

    kind: Literal["image-ambiguity"]
    photos: Annotated[Location, Place("folder", "media")]
    choices: StageName | None = None

    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-ambiguity")}

    @cached_property
    def photo_folder(self) -> ImageFolder:
        return ImageFolder(self.photos)

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        captions, places = self._captions, self._images.places()
        if self.choices is not None:
            chosen, lacking = decided_images(self._images, captions, self.stage.earlier(self.choices)), "not-chosen"
        else:
            chosen = best_images(self._images, len(captions), self._verified, None, False).image
            lacking = "no-image"
        for number, row in self._rows():
            image = int(chosen[number])
            photo = row["image"] or row["image_id"]
            if image == NO_IMAGE:
                left_out.add(lacking, row["place"])
            elif not photo:
                left_out.add("no-photo", row["place"])
            else:
                yield self._task(row, FitsCaption.name, row["caption"], ((photo, "", ""), places[image]), [image])

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return GENERATED
