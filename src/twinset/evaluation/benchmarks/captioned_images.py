"""Flickr30k and COCO as retrieval of captions by images and of images by captions, in Karpathy's splits."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field, TypeAdapter

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader, image_group
from twinset.evaluation.benchmarks.rows import REFETCH, Text, checked, read_values
from twinset.evaluation.examples import LeftOut, Picture, Query

IMAGE_TO_TEXT, TEXT_TO_IMAGE = "image-to-text", "text-to-image"
DIRECTIONS = (IMAGE_TO_TEXT, TEXT_TO_IMAGE)
SPLIT = "test"


class CaptionedGallery:
    """Images with captions that ask for each other: all that were added are the gallery."""

    def __init__(self) -> None:
        self.images: dict[str, tuple[Picture, list[str]]] = {}

    def add(self, group: str, picture: Picture, captions: Sequence[str]) -> None:
        """An image with its captions, or further captions of one that was added. group: unlike that of any other."""
        self.images.setdefault(group, (picture, []))[1].extend(captions)

    def queries(self, direction: str, subset: str) -> Iterator[Query]:
        """An image asks for any of its captions among all (`IMAGE_TO_TEXT`), a caption for its image among all."""
        pictures = tuple(picture for picture, _ in self.images.values())
        texts = tuple(caption for _, captions in self.images.values() for caption in captions)
        shown = [place for place, (_, captions) in enumerate(self.images.values()) for _ in captions]
        places = defaultdict[str, list[int]](list)  # the same caption of another image is right too, and that image
        for place, caption in enumerate(texts):
            places[caption].append(place)
        for group, (picture, captions) in self.images.items():
            about: dict[str, Any] = {"subset": subset, "group": group}
            if direction == TEXT_TO_IMAGE:
                for number, caption in enumerate(captions):
                    targets = frozenset(shown[at] for at in places[caption])
                    asked: dict[str, Any] = {"image": None, "text": caption, "targets": targets}
                    yield Query(key=f"{subset}/{group}/{number}", gallery=pictures, **about, **asked)
            else:
                targets = frozenset(at for caption in captions for at in places[caption])
                yield Query(key=f"{subset}/{group}", gallery=texts, image=picture, text=None, targets=targets, **about)


class Labelled(BaseModel):
    """The split of an image."""

    split: Text


class Sentence(BaseModel):
    """A caption."""

    raw: Text


class Described(BaseModel):
    """An image with its captions."""

    filename: Text
    sentences: list[Sentence] = Field(min_length=1)


LABELLED, DESCRIBED = TypeAdapter(Labelled), TypeAdapter(Described)


class CaptionedImages(Reader):
    """``{images: [{filename, split, sentences: [{raw}]}]}``; only the test split is asked, with all its captions.

    An image asks for any of its captions among all captions, a caption for its image among all images.
    """

    apart = True
    folders = ("", "annotations", "karpathy")
    obtained = "The splits are in caption_datasets.zip of Karpathy and Li (2015), 'Deep Visual-Semantic Alignments'"

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`: images that are missing are left out of both, with their captions."""
        gallery = CaptionedGallery()
        for where, _, record in (value for path in self.paths(subset) for value in read_values(path, "images")):
            if checked(record, LABELLED, where).split != SPLIT:
                continue
            image = checked(record, DESCRIBED, where)
            if (group := image_group(image.filename)) in gallery.images:
                raise WrongUse(f"{where}: a second record of the image {group}; {REFETCH}")
            picture = self.images.find(image.filename, where)
            if picture is None:
                yield LeftOut(f"{where}: {image.filename}", MISSING)
                continue
            gallery.add(group, picture, [sentence.raw for sentence in image.sentences])
        yield from gallery.queries(subset, subset)


class Flickr30k(CaptionedImages):
    """1,000 images with 5 captions each."""

    name, title = "flickr30k", "Flickr30k retrieval (2014), Karpathy's test split"
    citation, licence = "https://aclanthology.org/Q14-1006", "research only"
    counts: ClassVar = {IMAGE_TO_TEXT: 1000, TEXT_TO_IMAGE: 5000}
    files: ClassVar = dict.fromkeys(DIRECTIONS, "dataset_flickr30k.json")
    expects = "dataset_flickr30k.json, and the images of Flickr30k in a folder below"


class Coco(CaptionedImages):
    """5,000 images with 25,010 captions: ten images have more than 5."""

    name, title = "coco", "COCO retrieval (2015), Karpathy's test split"
    citation, licence = "https://arxiv.org/abs/1504.00325", "CC BY 4.0 (captions)"
    counts: ClassVar = {IMAGE_TO_TEXT: 5000, TEXT_TO_IMAGE: 25010}
    files: ClassVar = dict.fromkeys(DIRECTIONS, "dataset_coco.json")
    expects = "dataset_coco.json, and the images of COCO val2014 (or of the same numbers in 2017) in a folder below"
