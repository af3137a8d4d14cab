"""Flickr30k and COCO as retrieval of captions by images and of images by captions, in Karpathy's splits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from twinset.evaluation.benchmarks.json_items import json_items, list_of, object_of, text_of
from twinset.evaluation.benchmarks.reader import MISSING, FileReader, Item, image_group
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.manifests.errors import WrongUse

IMAGE_TO_TEXT, TEXT_TO_IMAGE = "image-to-text", "text-to-image"
SPLIT = "test"


class CaptionedImages(FileReader):
    """``{images: [{filename, split, sentences: [{raw}]}]}``; only the test split is asked, with all its captions.

    An image asks for any of its captions among all captions, a caption for its image among all images.
    """

    annotations: ClassVar[str]
    every = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
    folders = ("", "annotations", "karpathy")
    obtained = "The splits are in caption_datasets.zip of Karpathy and Li (2015), 'Deep Visual-Semantic Alignments'"

    def file_name(self, subset: str) -> str:
        return self.annotations

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`: images that are missing are left out of both, with their captions."""
        path = self.file(subset)
        names: list[str] = []
        pictures: list[Picture] = []
        captions: list[str] = []
        image_of: list[int] = []  # of each caption
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
            captions += said
            image_of += [len(pictures)] * len(said)
            pictures.append(picture)
            names.append(name)
        if subset == IMAGE_TO_TEXT:
            yield from _by_image(names, pictures, captions, image_of)
        else:
            yield from _by_caption(names, pictures, captions, image_of)


class Flickr30k(CaptionedImages):
    """1,000 images with 5 captions each."""

    name = "flickr30k"
    title = "Flickr30k retrieval (2014), Karpathy's test split"
    citation = "https://aclanthology.org/Q14-1006"
    annotations = "dataset_flickr30k.json"
    expects = "dataset_flickr30k.json, and the images of Flickr30k in a folder below"


class Coco(CaptionedImages):
    """5,000 images with 25,010 captions: ten images have more than 5."""

    name = "coco"
    title = "COCO retrieval (2015), Karpathy's test split"
    citation = "https://arxiv.org/abs/1504.00325"
    annotations = "dataset_coco.json"
    expects = "dataset_coco.json, and the images of COCO val2014 (or of the same numbers in 2017) in a folder below"


def _by_image(
    names: Sequence[str], pictures: Sequence[Picture], captions: Sequence[str], image_of: Sequence[int]
) -> Iterator[Query]:
    gallery, ends = tuple(captions), np.searchsorted(image_of, range(len(pictures)), side="right").tolist()
    for name, picture, (start, end) in zip(names, pictures, pairwise([0, *ends]), strict=True):
        yield Query(
            key=f"{IMAGE_TO_TEXT}/{image_group(name)}",
            subset=IMAGE_TO_TEXT,
            group=image_group(name),
            image=picture,
            text=None,
            gallery=gallery,
            targets=frozenset(range(start, end)),
        )


def _by_caption(
    names: Sequence[str], pictures: Sequence[Picture], captions: Sequence[str], image_of: Sequence[int]
) -> Iterator[Query]:
    gallery, numbers = tuple(pictures), Counter[int]()
    for caption, at in zip(captions, image_of, strict=True):
        yield Query(
            key=f"{TEXT_TO_IMAGE}/{image_group(names[at])}/{numbers[at]}",
            subset=TEXT_TO_IMAGE,
            group=image_group(names[at]),
            image=None,
            text=caption,
            gallery=gallery,
            targets=frozenset({at}),
        )
        numbers[at] += 1
