"""Photographs with captions as samples: Karpathy's COCO and Flickr30k, CC3M as img2dataset wrote it, your own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from twinset.contracts.candidate import SPLIT, Candidate
from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.image_text import ImageText
from twinset.contracts.kinds.samples import Frame
from twinset.contracts.locations import Location
from twinset.contracts.plan import Ids, Suspects
from twinset.contracts.references import Reference, reasons_beside
from twinset.contracts.source import Need, Place
from twinset.generators.annotation_files import OptionalFiles, SeveralFiles, Skipped, lines
from twinset.generators.captions.tables import CAPTION_REASONS, Caption, CaptionSources
from twinset.generators.captions.training_split import TrainingSplit, TrainShare
from twinset.generators.image_files import IMAGE_REASONS, OptionalImages, looked_for_by

NameList = Annotated[Location, Place("file", "annotations")] | None
LISTS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCaptionCandidate(Candidate):
    """An image and captions of it. image: where it is, as its source says. place: where its first caption stands."""

    image_id: str
    image: str
    captions: tuple[str, ...]
    place: str

    @property
    def media_names(self) -> tuple[str, ...]:
        return (looked_for_by(self.image, self.image_id),)


class ImageCaptions(OptionalImages):
    """Images and their captions, as they lie on disk.

    captions: files or folders of captions, read in this order (`generators.captions.tables`); captions of one image in
    several of them belong together, and make one sample.
    train, validation, test: files that name the images of each split, one a line, as Flickr8k's. Without any, the split
    is what the captions' source says, by ``splits``, or that of the subset. ``train`` may be a share (0-1) instead: of
    the images without a split of their own it puts so many in ``train``, by a hash of the recipe's seed and the image
    id, as `text-pairs` does; the others are in the split of the subset.
    splits: what splits of the source become; others keep their names. held_out: files of captions whose images are
    left out, but those that they name as trained on: so validation and test of COCO stay out of training, by number,
    whichever release named the file. licence: of images and captions.
    """

    kind: Literal["image-captions"]
    captions: SeveralFiles
    train: TrainShare | NameList = None
    validation: NameList = None
    test: NameList = None
    splits: Mapping[str, str] = {"restval": "train", "val": "validation", "dev": "validation"}
    held_out: OptionalFiles = ()
    licence: str

    makes = "image-text"
    reference = Reference("captions of images")
    group = "image"
    verb = "made from"
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        **IMAGE_REASONS,
        **reasons_beside(__file__, "image-captions"),
    }

    @model_validator(mode="after")
    def _share_or_lists(self) -> Self:
        if isinstance(self.train, float) and (self.validation or self.test):
            raise ValueError("train is a share beside a list of validation or test; give lists alone, or the share")
        return self

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        if "annotations" in needs:
            with naming(f"{key}.captions"):
                CaptionSources(self.captions)

    version = 2
    candidate = ImageCaptionCandidate

    def inputs(self) -> str:
        read = [self._captions.digest(), self._training.digest()]
        lists = (self._lists.get(split) for split in LISTS)
        return digest([*read, *(sha256_of_file(path)[0] if path else "" for path in lists)])

    def plan(self) -> Iterator[ImageCaptionCandidate]:
        """Images in the order in which they first come; behind them those whose captions are scattered.

        Memory grows by 16 bytes a caption, and by the captions of scattered images (COCO's own files are in such an
        order). Raises `WrongUse` when nothing can be read of a source, or no list names an image with captions.
        """
        self._training.check(self.stage.name)
        named, said = self._named(), list[Caption]()
        listed = len(named)
        for said in self._of_images():
            split, reason = self._split_of(said, named)
            if reason:
                for one in said:
                    self.excluded.add(reason, one.place)
                continue
            image = said[0]
            identified = self.identified(image.image_id, group=image.image_id, terms=image.terms)
            identified["split"] = split
            yield ImageCaptionCandidate(
                **identified,
                image_id=image.image_id,
                image=image.image,
                captions=tuple(one.caption for one in said),
                place=image.place,
            )
        if named and said and listed == len(named):
            place, _ = named[first := next(iter(named))]
            raise WrongUse(
                f"{place}: {first!r} is no image with captions, nor is any other name in train, validation and test; "
                f"write names as the captions have them, such as {said[0].image!r}"
            )
        for place, _ in named.values():
            self.excluded.add("no-caption", place)

    def sample(self, candidate: ImageCaptionCandidate, image: Frame | None) -> ImageText:
        return ImageText(
            **candidate.placed,
            image=image,
            captions=candidate.captions,
            image_id=candidate.image_id,
            provenance={"image": candidate.image, "place": candidate.place},
        )

    def _of_images(self) -> Iterator[list[Caption]]:
        """The captions of each image."""
        captions, images, last = Ids(), Ids(), None
        for one in self._captions.read():
            if isinstance(one, Caption):
                captions.add(one.caption_id)
                if one.image_id != last:
                    images.add(one.image_id)
                last = one.image_id
        repeated, scattered, apart = captions.suspects(), images.suspects(), dict[str, list[Caption]]()
        for image_id, run in groupby(self._first(repeated), key=lambda one: one.image_id):
            if image_id in scattered:
                apart.setdefault(image_id, []).extend(run)
            else:
                yield list(run)
        yield from apart.values()

    def _first(self, repeated: Suspects) -> Iterator[Caption]:
        """Captions, of each id the first one; all others are left out."""
        for read in self._captions.read():
            if isinstance(read, Skipped):
                self.excluded.add(read.reason, read.place)
            elif before := repeated.place_before(read.caption_id, read.place):
                self.excluded.add("repeated-id", f"{read.place}, id of {before}")
            else:
                yield read

    def _split_of(self, said: Sequence[Caption], named: dict[str, tuple[str, str]]) -> tuple[str, str]:
        """The split of an image, and why it is left out, if it is. named: as `_named`; found ones are removed."""
        names = said[0].image, said[0].image_id
        if self._lists:
            _, split = next((named.pop(name) for name in names if name in named), ("", ""))
        else:
            own = next((one.split for one in said if one.split), "")
            split = self.splits.get(own, own) or self._training.of(said[0].image_id, said[0].image)
        if not re.fullmatch(SPLIT, split):
            return split, "unknown-split" if split else "not-listed"
        return split, "held-out" if self._training.is_held_out(*names) else ""

    @property
    def _lists(self) -> dict[str, Path]:
        return {split: path for split in LISTS if isinstance(path := getattr(self, split), Path)}

    def _named(self) -> dict[str, tuple[str, str]]:
        """Place and split of each image that a list names."""
        named: dict[str, tuple[str, str]] = {}
        for split, path in self._lists.items():
            for number, line in lines(path):
                place = f"{path.name} line {number}"
                if isinstance(line, Skipped):
                    self.excluded.add(line.reason, place)
                elif (name := line.strip()) in named and named[name][1] != split:
                    raise WrongUse(
                        f"{path}, line {number}: {name!r} is of {named[name][1]} too ({named[name][0]}); an image has "
                        "one split: remove it from one list"
                    )
                else:
                    named.setdefault(name, (place, split))
        return named

    @cached_property
    def _captions(self) -> CaptionSources:
        return CaptionSources(self.captions)

    @cached_property
    def _training(self) -> TrainingSplit:
        share = self.train if isinstance(self.train, float) else None
        return TrainingSplit(share, self.stage.split, self.stage.seed, self.held_out)
