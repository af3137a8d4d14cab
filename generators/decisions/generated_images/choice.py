"""Which image of a negative caption is the best, or none, and whether it fits the original one too (BiVLC, 3.1).

Sources ``image-choice`` (step 3) and ``image-ambiguity`` (step 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.references import reasons_beside
from twinset.contracts.source import Place, StageName
from twinset.generators.decisions.agreement import share, share_of
from twinset.generators.decisions.generated_images.settings import (
    FITS,
    ImageDecisionGenerator,
    ImageDecisions,
    place_of,
)
from twinset.generators.decisions.generator import decision_of
from twinset.generators.decisions.question import Decision, TaskCandidate, tasks_of
from twinset.generators.decisions.questions import BOTH, NONE, PHOTO, BestImage, FitsCaption
from twinset.generators.generated_pairs.joining import NONE as NO_IMAGE
from twinset.generators.generated_pairs.joining import ImagePlace, best_images, decided_images, first_images, images_of
from twinset.shards.media.media_folder import ImageFolder

MOST_IMAGES = 9  # one key each


class ImageChoice(ImageDecisions):
    """People choose the best image of each negative caption, or none.

    least: captions whose best image scores less in ``verified`` are not asked; all are when absent. audit: share of
    these (0-1) that is asked all the same, so that it is known what verification misses. after: a stage
    ``image-ambiguity`` that was asked first; captions that it dropped are not asked.
    """

    kind: Literal["image-choice"]
    least: float | None = Field(default=None, gt=0, le=1)
    audit: float = Field(default=0.05, ge=0, le=1)
    after: StageName | None = None

    generator = "twinset.generators.decisions.generated_images.choice:ChoiceGenerator"
    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-choice")}

    @model_validator(mode="after")
    def _has_scores(self) -> ImageChoice:
        if self.least is not None and self.verified is None:
            raise ValueError("least needs the scores of a stage; name it with verified")
        return self


class ChoiceGenerator(ImageDecisionGenerator[ImageChoice]):
    """A task a negative caption that has images."""

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        after = self.source.after
        before = [] if after is None else tasks_of(self.context.earlier(after))
        ambiguous = {one.identity for one in before if one.decision and decision_of(one).reason == "ambiguous"}
        images, places = self._by_caption(), self.drawn.places()
        for number, row in self.wanted(left_out):
            own = images.get(number, [])
            best = self.best_score(own)
            shown, text = [places[one] for one in own], row["negative_caption"]
            task = self.task(row, shown, text, BestImage.name, priority=best, truth=self._truth(own))
            low = self.source.least is not None and not best >= self.source.least
            audit = low and share_of("audit", task.key) < self.source.audit
            if not own:
                left_out.add("no-image", place_of(row))
            elif row["identity"] in ambiguous:
                left_out.add("ambiguous", place_of(row))
            elif low and not audit:
                left_out.add("not-verified", place_of(row))
            else:
                yield replace(task, audit=audit)

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int:
        return int(made.choice)

    def measured(self) -> Mapping[str, Any]:
        """``verification``: its recall, the share it let through of the captions that have an image that fits.

        Of n audited captions k have one, so that of all d dropped captions d k / n have. The interval of the recall is
        that which Wilson's of k / n leaves: those that were let through were all asked. Undecided captions count as
        the decided ones of their side do.
        """
        if self.source.least is None:
            return {}
        now = self.gathered
        fits = {True: list[bool](), False: list[bool]()}
        for one in now.tasks:
            if one.key in now.decisions:
                fits[one.audit].append(now.decisions[one.key].kept)
        passed, audited = len(fits[False]), share(sum(fits[True]), len(fits[True]))
        asked = Counter(one.audit for one in now.tasks)
        dropped, fitting = now.left_out["not-verified"] + asked[True], sum(fits[False])
        # Where some were left undecided: of all that were let through as large a share fits as of those decided.
        kept = fitting * asked[False] / max(passed, 1)
        known = kept > 0 and (audited.of > 0 or dropped == 0)
        missed = (audited.count / max(audited.of, 1), audited.high, audited.low)
        recall, low, high = (kept / (kept + dropped * rate) if known else None for rate in missed)
        counts = {"passed": passed, "passed_fitting": fitting, "dropped": dropped}
        counts |= {"audited": audited.of, "audited_fitting": audited.count}
        return {"verification": {**counts, "recall": recall, "low": low, "high": high}}

    def _by_caption(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for one in np.lexsort((self.drawn.numbers, self.drawn.negatives)).tolist():
            found.setdefault(int(self.drawn.negatives[one]), []).append(one)
        if (most := max(map(len, found.values()), default=0)) > MOST_IMAGES:
            raise WrongUse(
                f"{self.name}: {most} images of a caption, and people choose among at most {MOST_IMAGES}; set "
                f"images_per_caption of {self.source.images}"
            )
        return found

    def _truth(self, own: list[int]) -> str:
        if self.true_scores is None:
            return ""
        fitting = np.flatnonzero(self.true_scores[0][own] >= FITS)
        return str(fitting[0]) if len(fitting) else NONE


GENERATED = 1  # number of the generated image in a task


class ImageAmbiguity(ImageDecisions):
    """People say which image fits the original caption: the photo, the generated one, or both.

    photos: folder of the photos; without it, images that were generated from the original captions are shown.
    choices: the stage ``image-choice`` that chose; without it the image with the highest score is asked about. asked:
    an earlier stage ``image-ambiguity``; an image that it asked about is not asked about again.
    """

    kind: Literal["image-ambiguity"]
    photos: Annotated[Location, Place("folder", "media")] | None = None
    choices: StageName | None = None
    asked: StageName | None = None

    generator = "twinset.generators.decisions.generated_images.choice:AmbiguityGenerator"
    reasons: ClassVar[Mapping[str, str]] = {**ImageDecisions.reasons, **reasons_beside(__file__, "image-ambiguity")}


class AmbiguityGenerator(ImageDecisionGenerator[ImageAmbiguity]):
    """A task a negative caption that has an image."""

    @cached_property
    def photos(self) -> ImageFolder | None:
        return None if self.source.photos is None else ImageFolder(self.source.photos)

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        asked = self.source.asked
        before = {} if asked is None else {one.identity: one for one in tasks_of(self.context.earlier(asked))}
        chosen, originals, places = self._chosen(), self._originals(), self.drawn.places()
        lacking = "no-image" if self.source.choices is None else "not-chosen"
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
                truth = self._truth(image)
                task = self.task(row, shown, row["caption"], FitsCaption.name, priority=priority, truth=truth)
                same = before.get(row["identity"])
                yield task if same is None or same.binding != task.binding else replace(task, decision=same.decision)

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int:
        return GENERATED

    def _chosen(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The image of each negative caption that is asked about; `NO_IMAGE` without one."""
        if self.source.choices is not None:
            return decided_images(self.drawn, self.negatives, self.context.earlier(self.source.choices))[0]
        verified = None if self.source.verified is None else self.context.earlier(self.source.verified)
        return best_images(self.drawn, len(self.negatives), verified, None, False).image

    def _originals(self) -> dict[int, ImagePlace] | None:
        """The image of each original caption; None where photos are shown."""
        if self.source.photos is not None:
            return None
        images = images_of(self.pictured, self.negatives, "caption")
        first = first_images(images, len(self.negatives))
        places = images.places()
        return {number: places[at] for number, at in enumerate(first.tolist()) if at != NO_IMAGE}

    def _truth(self, image: int) -> str:
        if self.true_scores is None:
            return ""
        return BOTH if self.true_scores[1][image] >= FITS else PHOTO
