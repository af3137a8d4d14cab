"""Questions about the images of negative captions: which is the best, or none, and whether it fits the original caption
too (BiVLC, section 3.1: ``image-choice`` is step 3, ``image-ambiguity`` step 4)."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa

from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.decisions.pictures import Picture, media_type_of
from twinset.generators.decisions.question import UNSCORED, BestImage, Decision, FitsCaption, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.generated_pairs.joining import NONE, Images, best_images, decided_images, images_of, scores_of
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
    question: ClassVar[str]
    text: ClassVar[str]  # column of the caption that is shown
    photo_first: ClassVar[bool] = False

    @property
    def lacking(self) -> str:
        """Why a caption is left out."""
        return "no-image"

    @abstractmethod
    def asked_about(self, images: Images, captions: pa.Table) -> Sequence[Sequence[int]]:
        """By caption, the numbers of the images that are asked about; none where it is left out as `lacking`."""

    @property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.images)

    @cached_property
    def verification(self) -> FinishedStage | None:
        """The stage ``verified``."""
        return None if self.verified is None else self.stage.earlier(self.verified)

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        captions = self.stage.earlier(self.negatives).read(["key", "identity", *COLUMNS.names])
        images = images_of(self.pictured, captions, "negative_caption")
        places, scores = images.places(), scores_of(images, self.verification)[0]
        for row, asked in zip(captions.to_pylist(), self.asked_about(images, captions), strict=True):
            photo, shown = row["image"] or row["image_id"], [places[image] for image in asked]
            if lacking := self.lacking if not asked else "no-photo" if self.photo_first and not photo else "":
                left_out.add(lacking, f"{row['key']} ({row['caption_id'][:100]})")
                continue
            key = sample_key(self.stage.name, *json.loads(row["identity"]))
            names, tars, sha256s = zip(*([(photo, "", ""), *shown] if self.photo_first else shown), strict=True)
            known = [float(score) for score in scores[[*asked]] if not np.isnan(score)]
            yield TaskCandidate(
                key=key,
                group=key,
                split=self.stage.split,
                identity=row["identity"],
                question=self.question,
                texts=(row[self.text],),
                images=names,
                image_tars=tars,
                image_sha256s=sha256s,
                subject=row["key"],
                kind_name=kind_name(row["type"], row["subtype"]),
                priority=max(known, default=UNSCORED),
            )


class ImageChoice(ImageDecisions):
    """People choose the best image of each negative caption, or none."""

    kind: Literal["image-choice"]

    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-choice")}
    question, text = BestImage.name, "negative_caption"

    def asked_about(self, images: Images, captions: pa.Table) -> Sequence[Sequence[int]]:
        by_caption = defaultdict[int, list[int]](list)
        for number, caption in enumerate(images.negatives.tolist()):
            by_caption[caption].append(number)
        if (most := max(map(len, by_caption.values()), default=0)) > MOST_IMAGES:
            raise WrongUse(
                f"{self.stage.name}: {most} images of a caption, and people choose among at most {MOST_IMAGES}; set "
                f"images_per_caption of {self.images}"
            )
        return [by_caption[caption] for caption in range(len(captions))]

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
    question, text, photo_first = FitsCaption.name, "caption", True

    @property
    def lacking(self) -> str:
        return "no-image" if self.choices is None else "not-chosen"

    @cached_property
    def _photos(self) -> ImageFolder:
        return ImageFolder(self.photos)

    def asked_about(self, images: Images, captions: pa.Table) -> Sequence[Sequence[int]]:
        if self.choices is None:
            chosen = best_images(images, len(captions), self.verification, None, False).image
        else:
            chosen = decided_images(images, captions, self.stage.earlier(self.choices))
        return [[] if image == NONE else [image] for image in chosen.tolist()]

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
