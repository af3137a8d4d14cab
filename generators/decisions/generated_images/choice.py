"""Which image of a negative caption is the best, or none, and whether it fits the original one too (BiVLC, 3.1).

Sources ``image-choice`` (step 3) and ``image-ambiguity`` (step 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.decisions.generated_images.settings import (
    ImageDecisions,
    place_of,
)
from twinset.generators.decisions.question import Decision, TaskCandidate
from twinset.generators.decisions.questions import BestImage, FitsCaption
from twinset.generators.generated_pairs.joining import NONE as NO_IMAGE
from twinset.generators.generated_pairs.joining import ImagePlace, best_images, decided_images, first_images, images_of
from twinset.shards.media.media_folder import ImageFolder

MOST_IMAGES = 9  # one key each


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
        images, places = self._by_caption(), self.drawn.places()
        for number, row in self.wanted(left_out):
            own = images.get(number, [])
            best = self.best_score(own)
            if not own:
                left_out.add("no-image", place_of(row))
            elif self.least is not None and not best >= self.least:
                left_out.add("not-verified", place_of(row))
            else:
                shown = [places[one] for one in own]
                yield self.task(row, shown, row["negative_caption"], BestImage.name, priority=best)

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int:
        return int(made.choice)

    def _by_caption(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for one in np.lexsort((self.drawn.numbers, self.drawn.negatives)).tolist():
            found.setdefault(int(self.drawn.negatives[one]), []).append(one)
        if (most := max(map(len, found.values()), default=0)) > MOST_IMAGES:
            raise WrongUse(
                f"{self.stage.name}: {most} images of a caption, and people choose among at most {MOST_IMAGES}; set "
                f"images_per_caption of {self.images}"
            )
        return found


GENERATED = 1  # number of the generated image in a task


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
        chosen, originals, places = self._chosen(), self._originals(), self.drawn.places()
        lacking = "no-image" if self.choices is None else "not-chosen"
        for number, row in self.wanted(left_out):
            image, photo = int(chosen[number]), (row["image"] or row["image_id"], "", "")
            if originals is not None:
                photo = originals.get(number, ("", "", ""))
            if image == NO_IMAGE:
                left_out.add(lacking, place_of(row))
            elif not photo[0]:
                left_out.add("no-photo" if originals is None else "no-image", place_of(row))
            else:
                shown, priority = (photo, places[image]), self.best_score([image])
                yield self.task(row, shown, row["caption"], FitsCaption.name, priority=priority)

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int:
        return GENERATED

    def _chosen(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The image of each negative caption that is asked about; `NO_IMAGE` without one."""
        if self.choices is not None:
            return decided_images(self.drawn, self.negative_rows, self.stage.earlier(self.choices))
        verified = None if self.verified is None else self.stage.earlier(self.verified)
        return best_images(self.drawn, len(self.negative_rows), verified, None, False).image

    def _originals(self) -> dict[int, ImagePlace] | None:
        """The image of each original caption; None where photos are shown."""
        if self.photos is not None:
            return None
        images = images_of(self.pictured, self.negative_rows, "caption")
        first = first_images(images, len(self.negative_rows))
        places = images.places()
        return {number: places[at] for number, at in enumerate(first.tolist()) if at != NO_IMAGE}
