"""Images with captions on sheets and cards: the picture, and below it what people said of it."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from twinset.cards.kinds.kind import CardKind, how_often, records_of
from twinset.cards.plots import Counts
from twinset.cards.sheet import LONGEST_TEXT, Block, Cell, in_group, words, words_of
from twinset.contracts.kinds.image_text import IMAGE_TEXT, ImageTextRecord
from twinset.contracts.kinds.kind import Stored
from twinset.shards.read import index_rows
from twinset.shards.storage.store import Store

SHOWN = 5  # captions below a picture


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTextStatistics:
    """What a researcher should know of the images and captions of a subset.

    captions: all, repeated ones too. image_captions: samples by the number of their captions; caption_words: captions
    by their number of words. sampled: samples whose images were looked at, evenly spread; image_sizes: these by
    (width, height).
    """

    captions: int
    image_captions: Counts
    caption_words: Counts
    distinct_images: int
    distinct_captions: int
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]


def statistics(store: Store, subset: str) -> ImageTextStatistics:
    """Count what the card says of a subset of images with captions, which are read as a stream."""
    each, said_words = Counter[int](), Counter[int]()
    images, captions = set[int](), set[int]()  # 64-bit hashes: millions of whole captions would fill the memory
    for row in index_rows(store, subset, ("captions", "image_id", *IMAGE_TEXT.hashed)):
        every = json.loads(row["captions"])
        each[len(every)] += 1
        said_words.update(len(words_of(one[:LONGEST_TEXT])) for one in every)
        captions.update(map(hash, every))
        images.add(hash(row["image_sha256"] or row["image_id"]))
    sampled: list[ImageTextRecord] = records_of(store, subset, IMAGE_TEXT)
    return ImageTextStatistics(
        captions=said_words.total(),
        image_captions=dict(sorted(each.items())),
        caption_words=dict(sorted(said_words.items())),
        distinct_images=len(images),
        distinct_captions=len(captions),
        sampled=len(sampled),
        image_sizes=how_often(one.image.size for one in sampled),
    )


def _block(sample: Stored[ImageTextRecord]) -> Block:
    every = sample.json.captions
    cells = [Cell(image=sample.images["image"], words=words(every[0]))]
    cells += [Cell(words=words(one)) for one in every[1:SHOWN]]
    more = [f"{len(every) - SHOWN} more captions"] if len(every) > SHOWN else []
    return Block(sample.key, cells, 1, " | ".join([*more, *in_group(sample.key, sample.json.group)]))


def _panels(numbers: ImageTextStatistics, _group: str) -> dict[str, Counts]:
    return {
        "captions by number of words": numbers.caption_words,
        "images by number of captions": numbers.image_captions,
    }


IMAGE_TEXTS = CardKind(
    sample=IMAGE_TEXT,
    what=("images with captions", "an image, and one caption or several that people or web pages give it"),
    tasks=("image-to-text", "zero-shot-image-classification"),
    tags=("image-text-pairs", "contrastive-learning"),
    columns={
        "caption": "The first caption of the image.",
        "captions": "All captions of the image, as a JSON list.",
        "image_id": "Id of the image, as the source of the captions calls it.",
    },
    block=_block,
    legend={"": "The captions of an image stand below it."},
    statistics=statistics,
    panels=_panels,
)
