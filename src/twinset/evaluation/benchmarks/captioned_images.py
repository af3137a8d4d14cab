"""Flickr30k and COCO as retrieval of captions by images and of images by captions, in Karpathy's splits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.json_items import json_items, list_of, object_of, text_of
from twinset.evaluation.benchmarks.reader import MISSING, FileReader, Item, image_group
from twinset.evaluation.examples import LeftOut, Picture, Query

IMAGE_TO_TEXT, TEXT_TO_IMAGE = "image-to-text", "text-to-image"
DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
SPLIT = "test"


@dataclass(frozen=True, slots=True)
class CaptionedImage:
    """An image with captions. group: unlike that of any other image."""

    group: str
    picture: Picture
    captions: Sequence[str]


class CaptionedGallery:
    """Images with captions that ask for each other: all that were added are the gallery."""

    def __init__(self) -> None:
        self._images: list[tuple[str, Picture]] = []
        self._captions: list[str] = []
        self._image_of: list[int] = []  # of each caption

    def add(self, image: CaptionedImage) -> None:
        """An image with its captions, or further captions of the last one."""
        if not self._images or self._images[-1][0] != image.group:
            self._images.append((image.group, image.picture))
        self._captions += image.captions
        self._image_of += [len(self._images) - 1] * len(image.captions)

    def queries(self, direction: str, subset: str) -> Iterator[Query]:
        """An image asks for any of its captions among all (`IMAGE_TO_TEXT`), a caption for its image among all."""
        pictures, texts = tuple(picture for _, picture in self._images), tuple(self._captions)
        if direction == IMAGE_TO_TEXT:
            places: dict[str, list[int]] = {}  # the same caption of another image is right too
            for at, caption in enumerate(texts):
                places.setdefault(caption, []).append(at)
            ends = np.searchsorted(self._image_of, range(len(pictures)), side="right").tolist()
            for (group, picture), (start, end) in zip(self._images, pairwise([0, *ends]), strict=True):
                key = f"{subset}/{group}"
                targets = frozenset(at for caption in texts[start:end] for at in places[caption])
                yield Query(
                    key=key, subset=subset, group=group, image=picture, text=None, gallery=texts, targets=targets
                )
            return
        numbers = Counter[int]()
        for caption, at in zip(texts, self._image_of, strict=True):
            group, targets = self._images[at][0], frozenset({at})
            yield Query(
                key=f"{subset}/{group}/{numbers[at]}",
                subset=subset,
                group=group,
                image=None,
                text=caption,
                gallery=pictures,
                targets=targets,
            )
            numbers[at] += 1


class CaptionedImages(FileReader):
    """``{images: [{filename, split, sentences: [{raw}]}]}``; only the test split is asked, with all its captions.

    An image asks for any of its captions among all captions, a caption for its image among all images.
    """

    annotations: ClassVar[str]
    apart = True
    every = DIRECTIONS
    folders = ("", "annotations", "karpathy")
    obtained = "The splits are in caption_datasets.zip of Karpathy and Li (2015), 'Deep Visual-Semantic Alignments'"

    def file_name(self, subset: str) -> str:
        return self.annotations

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`: images that are missing are left out of both, with their captions."""
        path = self.file(subset)
        gathered = CaptionedGallery()
        for number, record in json_items(path, "images"):
            where = f"{path} image {number}"
            if object_of(record, where).get("split") != SPLIT:
                continue
            name = text_of(record, "filename", where)
            picture = self.images.find(name, where)
            if picture is None:
                yield LeftOut(f"{where}: {name}", MISSING)
                continue
            said = [text_of(sentence, "raw", where) for sentence in list_of(record, "sentences", where)]
            if not said:
                raise WrongUse(f"{where}: an image without sentences; fetch the file again")
            gathered.add(CaptionedImage(image_group(name), picture, said))
        yield from gathered.queries(subset, subset)


class Flickr30k(CaptionedImages):
    """1,000 images with 5 captions each."""

    name = "flickr30k"
    title = "Flickr30k retrieval (2014), Karpathy's test split"
    citation = "https://aclanthology.org/Q14-1006"
    licence = "research only"
    counts: ClassVar = {IMAGE_TO_TEXT: 1000, TEXT_TO_IMAGE: 5000}
    annotations = "dataset_flickr30k.json"
    expects = "dataset_flickr30k.json, and the images of Flickr30k in a folder below"


class Coco(CaptionedImages):
    """5,000 images with 25,010 captions: ten images have more than 5."""

    name = "coco"
    title = "COCO retrieval (2015), Karpathy's test split"
    citation = "https://arxiv.org/abs/1504.00325"
    licence = "CC BY 4.0 (captions)"
    counts: ClassVar = {IMAGE_TO_TEXT: 5000, TEXT_TO_IMAGE: 25010}
    annotations = "dataset_coco.json"
    expects = "dataset_coco.json, and the images of COCO val2014 (or of the same numbers in 2017) in a folder below"
