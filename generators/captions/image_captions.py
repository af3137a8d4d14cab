"""Photographs with captions as samples: Karpathy's COCO and Flickr30k, CC3M as img2dataset wrote it, your own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from twinset.contracts.candidate import SPLIT, Candidate
from twinset.contracts.canonical import canonical_json, digest, sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.kind import Sample, SampleKind
from twinset.contracts.kinds.samples import Frame
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference
from twinset.contracts.source import Need, Place
from twinset.generators.annotation_files import Met, SeveralFiles, Skipped, lines
from twinset.generators.captions.tables import CAPTION_REASONS, Caption, CaptionSources
from twinset.generators.captions.training_split import TrainingSplit, TrainShare
from twinset.generators.image_files import IMAGE_REASONS, OptionalImages, looked_for_by
from twinset.generators.reasons import reasons_beside

NameList = Annotated[Location, Place("file", "annotations")] | None
SPLITS = {"restval": "train", "val": "validation", "dev": "validation"}  # of Karpathy, and others


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


@dataclass(slots=True, kw_only=True)
class ImageText(Sample):
    """An image with captions. image: None in an index. captions: one at least; the first is its text."""

    kind: ClassVar[SampleKind] = IMAGE_TEXT

    image: Frame | None
    captions: tuple[str, ...]
    image_id: str

    @property
    def caption(self) -> str:
        """The first."""
        return self.captions[0]

    def described(self) -> dict[str, str]:
        captions = canonical_json(self.captions).decode()
        return {"caption": self.caption, "captions": captions, "image_id": self.image_id}

    def question(self, images: Mapping[str, str]) -> Any:
        """As `Sample.question`; without images, of the same image id."""
        return [self.kind.name, list(self.captions), dict(images) or self.image_id]


class ImageCaptions(OptionalImages):
    """Images and their captions, as they lie on disk.

    captions: files or folders of captions, read in this order (`generators.captions.tables`); captions of one image in
    several of them belong together, and make one sample.
    train, validation, test: files that name the images of each split, one a line, as Flickr8k's. Without any, the split
    is what the captions' source says (``restval`` is ``train``, ``val`` and ``dev`` are ``validation``), or that of the
    subset. ``train`` may be a share (0-1) instead: of the images without a split of their own it puts so many in
    ``train``, by a hash of the recipe's seed and the image id, as `text-pairs` does. licence: of images and captions.
    """

    kind: Literal["image-captions"]
    captions: SeveralFiles
    train: TrainShare | NameList = None
    validation: NameList = None
    test: NameList = None
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

    version = 3
    candidate = ImageCaptionCandidate

    def inputs(self) -> str:
        return digest([self._captions.digest(), *([split, *sha256_of_file(path)] for split, path in self._lists)])

    def plan(self) -> Iterator[ImageCaptionCandidate]:
        """Images in the order in which they first come; behind them those whose captions are scattered.

        Memory holds a digest a caption, and the captions of scattered images, as COCO's files have them. Raises
        `WrongUse` when nothing can be read of a source.
        """
        self._training.check(self.stage.name)
        named = self._named()
        for captions in self._of_images():
            image, split = captions[0], self._split_of(captions, named)
            if not re.fullmatch(SPLIT, split):
                for caption in captions:
                    self.excluded.add("unknown-split" if split else "not-listed", caption.place)
                continue
            identified = self.identified(image.image_id, group=image.image_id, terms=image.terms)
            identified["split"] = split
            yield ImageCaptionCandidate(
                **identified,
                image_id=image.image_id,
                image=image.image,
                captions=tuple(caption.caption for caption in captions),
                place=image.place,
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
        images, scattered, last = Met(), set[str](), None
        for caption in self._captions.read():
            if isinstance(caption, Caption):
                if caption.image_id != last and images.before(caption.image_id):
                    scattered.add(caption.image_id)
                last = caption.image_id
        apart = dict[str, list[Caption]]()
        for image_id, captions in groupby(self._first(), key=lambda caption: caption.image_id):
            if image_id in scattered:
                apart.setdefault(image_id, []).extend(captions)
            else:
                yield list(captions)
        yield from apart.values()

    def _first(self) -> Iterator[Caption]:
        """Captions, of each id the first one; all others are left out."""
        ids = Met()
        for read in self._captions.read():
            if isinstance(read, Skipped):
                self.excluded.add(read.reason, read.place)
            elif ids.before(read.caption_id):
                self.excluded.add("repeated-id", read.place)
            else:
                yield read

    def _split_of(self, captions: Sequence[Caption], named: dict[str, tuple[str, str]]) -> str:
        """The split of an image, empty where no list names it. named: as `_named`; its name is removed."""
        image = captions[0]
        if self._lists:
            name = image.image if image.image in named else image.image_id
            return named.pop(name, ("", ""))[1]
        own = next((caption.split for caption in captions if caption.split), "")
        return SPLITS.get(own, own) or self._training.of(image.image_id)

    @cached_property
    def _training(self) -> TrainingSplit:
        return TrainingSplit(self.train if isinstance(self.train, float) else None, self.stage.split, self.stage.seed)

    @property
    def _lists(self) -> list[tuple[str, Path]]:
        lists = {"train": self.train, "validation": self.validation, "test": self.test}
        return [(split, path) for split, path in lists.items() if isinstance(path, Path)]

    def _named(self) -> dict[str, tuple[str, str]]:
        """Place and split of each image that a list names."""
        named: dict[str, tuple[str, str]] = {}
        for split, path in self._lists:
            for number, line in lines(path):
                place = f"{path.name} line {number}"
                if isinstance(line, Skipped):
                    self.excluded.add(line.reason, place)
                elif named.setdefault(name := line.strip(), (place, split))[1] != split:
                    raise WrongUse(
                        f"{path}, line {number}: {name!r} is of {named[name][1]} too ({named[name][0]}); an image has "
                        "one split: remove it from one list"
                    )
        return named

    @cached_property
    def _captions(self) -> CaptionSources:
        return CaptionSources(self.captions)
