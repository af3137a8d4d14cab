"""Questions about the images of negative captions: which is the best, or none, and whether it fits the original caption
too (BiVLC, section 3.1: ``image-choice`` is step 3, ``image-ambiguity`` step 4)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.decisions.pictures import Picture, media_type_of
from twinset.generators.decisions.question import UNSCORED, BestImage, Decision, FitsCaption, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.generated_pairs.joining import (
    best_images,
    decided_images,
    first_images,
    frame_of,
    images_of,
)
from twinset.generators.negative_captions.kinds import COLUMNS, kind_name
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder

if TYPE_CHECKING:
    import polars as pl

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
    def _captions(self) -> pl.DataFrame:
        """All negative captions."""
        return frame_of(self.stage.earlier(self.negatives).read(["key", "identity", *COLUMNS.names]))

    @cached_property
    def _images(self) -> pl.DataFrame:
        """Their images, as `generated_pairs.joining` has them."""
        return images_of(self.pictured, self._captions, "negative_caption", self._verified)

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows of negative captions, with their numbers; ``place`` names them in messages."""
        for number, row in enumerate(self._captions.iter_rows(named=True)):
            yield number, {**row, "place": f"{row['key']} ({row['caption_id'][:100]})"}

    def _task(
        self, row: Mapping[str, str], question: str, text: str, images: Sequence[Mapping[str, Any]]
    ) -> TaskCandidate:
        """The task that asks about a negative caption; its priority is the best score of its images.

        Args:
            row: of the negative caption.
            question, text, images: that are shown.
        """
        key = sample_key(self.stage.name, *json.loads(row["identity"]))
        return TaskCandidate(
            key=key,
            group=key,
            split=self.stage.split,
            identity=row["identity"],
            question=question,
            texts=(text,),
            images=tuple(image["key"] for image in images),
            image_tars=tuple(image["tar"] for image in images),
            image_sha256s=tuple(image["image_sha256"] for image in images),
            subject=row["key"],
            kind_name=kind_name(row["type"], row["subtype"]),
            priority=max((image["score"] for image in images if image["score"] is not None), default=UNSCORED),
        )


class ImageChoice(ImageDecisions):
    """People choose the best image of each negative caption, or none."""

    kind: Literal["image-choice"]

    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-choice")}

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        by_caption = defaultdict[int, list[dict[str, Any]]](list)
        for image in self._images.iter_rows(named=True):
            by_caption[image["row"]].append(image)
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
                yield self._task(row, BestImage.name, row["negative_caption"], images)

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
    def _photos(self) -> ImageFolder:
        return ImageFolder(self.photos)

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        if self.choices is not None:
            choices = self.stage.earlier(self.choices)
            images, lacking = decided_images(self._images, self._captions, choices), "not-chosen"
        else:
            images = first_images(self._images) if self.verified is None else best_images(self._images)
            lacking = "no-image"
        chosen = {image["row"]: image for image in images.iter_rows(named=True)}
        for number, row in self._rows():
            photo = row["image"] or row["image_id"]
            if number not in chosen:
                left_out.add(lacking, row["place"])
            elif not photo:
                left_out.add("no-photo", row["place"])
            else:
                shown = {"key": photo, "tar": "", "image_sha256": "", "score": None}, chosen[number]
                yield self._task(row, FitsCaption.name, row["caption"], shown)

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return GENERATED

    def picture(self, task: TaskCandidate, number: int) -> Picture:
        """As `Decisions.picture`; raises `WrongUse` where the photo is absent from its folder."""
        if task.image_tars[number]:
            return super().picture(task, number)
        name, folder = task.images[number], self._photos
        photo = folder.find(name)
        if photo is None:
            raise WrongUse(folder.absent(name, f"{folder.root}: holds no photo {name}; add it"))
        return Picture(photo.read(), media_type_of(Path(photo.name).suffix.lstrip(".").lower()))
