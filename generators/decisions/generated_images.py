"""Questions about the images of negative captions: which is the best, or none, and whether it fits the original caption
too (BiVLC, section 3.1: ``image-choice`` is step 3, ``image-ambiguity`` step 4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location
from twinset.contracts.parts import LeftOut
from twinset.contracts.source import Place, StageName
from twinset.generators.decisions.question import BestImage, Decision, FitsCaption, TaskCandidate
from twinset.generators.decisions.source import Decisions
from twinset.generators.generated_pairs.joining import decided_images, frame_of, images_of
from twinset.generators.negative_captions.kinds import COLUMNS, kind_name
from twinset.generators.reasons import reasons_beside
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import ImageFolder

if TYPE_CHECKING:
    import polars as pl

GENERATED = 1  # number of the generated image in a task of `ImageAmbiguity`


class ImageDecisions(Decisions):
    """A task a negative caption, with its identity.

    negatives: the stage of negative captions. images: the stage of images that were generated from it.
    """

    negatives: StageName
    images: StageName

    group = "negative caption"

    @property
    def pictured(self) -> FinishedStage:
        return self.stage.earlier(self.images)

    @cached_property
    def _captions(self) -> pl.DataFrame:
        """All negative captions."""
        return frame_of(self.stage.earlier(self.negatives).read(["key", "identity", *COLUMNS.names]))

    @cached_property
    def _images(self) -> pl.DataFrame:
        """Their images, as `generated_pairs.joining` has them."""
        return images_of(self.pictured, self._captions, "negative_caption")

    def _captioned(self, images: pl.DataFrame) -> Iterator[dict[str, Any]]:
        """Each negative caption with its ``images``, key, tar and sha256 of each; ``place`` names it in messages."""
        import polars as pl

        shown = images.group_by("row", maintain_order=True).agg(pl.struct("key", "tar", "image_sha256").alias("images"))
        place = pl.format("{} ({})", "key", pl.col("caption_id").str.slice(0, 100)).alias("place")
        captions = self._captions.with_columns(place).with_row_index("row")
        yield from captions.join(shown, "row", how="left", maintain_order="left").iter_rows(named=True)

    def _task(self, row: Mapping[str, Any], text: str, photos: Sequence[str] = ()) -> TaskCandidate:
        """The task that shows a text, names of photos, and the images of a row of `_captioned`."""
        identity = json.loads(row["identity"])
        return self.task(
            *identity,
            texts=(text,),
            images=[*((name, "", "") for name in photos), *(tuple(image.values()) for image in row["images"])],
            subject=row["key"],
            split=self.stage.split,
            group=sample_key(self.stage.name, *identity),
            kind_name=kind_name(row["type"], row["subtype"]),
        )


class ImageChoice(ImageDecisions):
    """People choose the best image of each negative caption, or none."""

    kind: Literal["image-choice"]

    asks = BestImage
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-choice")

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        for row in self._captioned(self._images):
            if row["images"] is None:
                left_out.add("no-image", row["place"])
            else:
                yield self._task(row, row["negative_caption"])

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return int(decision.choice)


class ImageAmbiguity(ImageDecisions):
    """People say which image fits the original caption: the photo, the generated one, or both.

    photos: folder of the photos. choices: the stage ``image-choice`` that chose the generated ones.
    """

    kind: Literal["image-ambiguity"]
    photos: Annotated[Location, Place("folder", "media")]
    choices: StageName

    asks = FitsCaption
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "image-ambiguity")

    def tasks(self, left_out: LeftOut) -> Iterator[TaskCandidate]:
        for row in self._captioned(decided_images(self._images, self._captions, self.stage.earlier(self.choices))):
            photo = row["image"] or row["image_id"]
            if row["images"] is None:
                left_out.add("not-chosen", row["place"])
            elif not photo:
                left_out.add("no-photo", row["place"])
            else:
                yield self._task(row, row["caption"], [photo])

    def chosen_image(self, task: TaskCandidate, decision: Decision) -> int:
        return GENERATED

    @cached_property
    def _photos(self) -> ImageFolder:
        return ImageFolder(self.photos)

    def picture(self, task: TaskCandidate, number: int) -> bytes:
        """As `Decisions.picture`; raises `WrongUse` where the photo is absent from its folder."""
        if task.image_tars[number]:
            return super().picture(task, number)
        name = task.images[number]
        photo = self._photos.find(name)
        if photo is None:
            raise WrongUse(self._photos.absent(name, f"{self._photos.root}: holds no photo {name}; add it"))
        return photo.read()
