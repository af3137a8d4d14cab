"""Whether the image of a negative caption fits the original one too: source ``image-ambiguity`` (BiVLC, section 3.1,
step 4)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from twinset.generators.decisions.generated_images.settings import (
    FITS,
    ImageDecisionGenerator,
    ImageDecisions,
    place_of,
)
from twinset.generators.decisions.question import UNSCORED, Decision, TaskCandidate, tasks_of
from twinset.generators.decisions.questions import BOTH, PHOTO, FitsCaption
from twinset.generators.generated_pairs.joining import NONE, best_images, decided_images, first_images, images_of
from twinset.generators.negative_captions.kinds import kind_name
from twinset.manifests.canonical import sample_key
from twinset.manifests.locations import Location
from twinset.manifests.source import Place, StageName
from twinset.shards.contracts import LeftOut
from twinset.shards.media.media_folder import ImageFolder

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

    generator = "twinset.generators.decisions.generated_images.ambiguity:AmbiguityGenerator"
    reasons: ClassVar[Mapping[str, str]] = {
        **ImageDecisions.reasons,
        "ambiguous": "the generated image fits the original caption too, or better than the photo",
        "not-chosen": "negative captions of which no image was chosen",
        "no-photo": "negative captions that name no photo",
    }


class AmbiguityGenerator(ImageDecisionGenerator[ImageAmbiguity]):
    """A task a negative caption that has an image."""

    @cached_property
    def _folder(self) -> ImageFolder | None:
        return None if self.source.photos is None else ImageFolder(self.source.photos)

    @property
    def photos(self) -> ImageFolder | None:
        return self._folder

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        """As `DecisionGenerator.tasks`, in the order of the negative captions."""
        asked = self.source.asked
        before = {} if asked is None else {one.identity: one for one in tasks_of(self.context.earlier(asked))}
        chosen, originals, (keys, tars, sha256s) = self._chosen(), self._originals(), self.places
        lacking = "no-image" if self.source.choices is None else "not-chosen"
        for number, row in self.wanted(left_out):
            image, photo = int(chosen[number]), (row["image"] or row["image_id"], "", "")
            if originals is not None:
                photo = originals.get(number, ("", "", ""))
            if image == NONE:
                left_out.add(lacking, place_of(row))
            elif not photo[0]:
                left_out.add("no-photo" if originals is None else "no-image", place_of(row))
            else:
                key, score = sample_key(self.name, *json.loads(row["identity"])), float(self.scores[image])
                task = TaskCandidate(
                    key=key,
                    group=key,
                    split=self.split,
                    identity=row["identity"],
                    question=FitsCaption.name,
                    texts=(row["caption"],),
                    images=(photo[0], keys[image]),
                    image_tars=(photo[1], tars[image]),
                    image_sha256s=(photo[2], sha256s[image]),
                    subject=row["key"],
                    kind_name=kind_name(row["type"], row["subtype"]),
                    priority=UNSCORED if np.isnan(score) else score,
                    truth=self._truth(image),
                )
                same = before.get(row["identity"])
                yield task if same is None or same.binding != task.binding else replace(task, decision=same.decision)

    def chosen_image(self, task: TaskCandidate, made: Decision) -> int:
        """As `DecisionGenerator.chosen_image`: the generated one, which stays."""
        return GENERATED

    def _chosen(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The image of each negative caption that is asked about; `NONE` without one."""
        if self.source.choices is not None:
            return decided_images(self.drawn, self.negatives, self.context.earlier(self.source.choices))[0]
        verified = None if self.source.verified is None else self.context.earlier(self.source.verified)
        return best_images(self.drawn, len(self.negatives), verified, None, False).image

    def _originals(self) -> dict[int, tuple[str, str, str]] | None:
        """Key, tar and sha256 of the image of each original caption; None where photos are shown."""
        if self.source.photos is not None:
            return None
        images = images_of(self.pictured, self.negatives, "caption")
        first = first_images(images, len(self.negatives))
        columns = [one.to_pylist() for one in (images.keys, images.tars, images.sha256s)]
        told = ((number, int(at)) for number, at in enumerate(first) if at != NONE)
        return {number: (columns[0][at], columns[1][at], columns[2][at]) for number, at in told}

    def _truth(self, image: int) -> str:
        if self.true_scores is None:
            return ""
        return BOTH if self.true_scores[1][image] >= FITS else PHOTO
