"""Images with captions on sheets and cards: the picture, and below it what people said of it."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from twinset.cards.kinds.kind import CardKind, said_of
from twinset.cards.kinds.statistics import how_often, word_counts
from twinset.cards.sheet import Block, Cell, noted, words
from twinset.contracts.kinds.image_text import IMAGE_TEXT, ImageTextRecord
from twinset.contracts.kinds.kind import Stored

SHOWN = 5  # captions below a picture


def image_of_caption() -> pl.Expr:
    """The image that captions are of: its content, or its id in an index without images."""
    return pl.when(pl.col("image_sha256") != "").then("image_sha256").otherwise("image_id")


def _numbers(rows: pl.DataFrame, _records: Sequence[Any]) -> dict[str, Any]:
    """captions: all, repeated ones too."""
    captions = rows["captions"].str.json_decode(pl.List(pl.String))
    every = captions.explode()
    return {
        "captions": len(every),
        "image_captions": how_often(captions.list.len()),
        "caption_words": word_counts(every),
        "distinct_images": rows.select(image_of_caption()).n_unique(),
        "distinct_captions": every.n_unique(),
    }


def _block(sample: Stored[ImageTextRecord]) -> Block:
    every = sample.json.captions
    cells = [Cell(image=sample.images["image"], words=words(every[0]))]
    cells += [Cell(words=words(caption)) for caption in every[1:SHOWN]]
    more = f"{len(every) - SHOWN} more captions" if len(every) > SHOWN else ""
    return Block(sample.key, cells, 1, noted(sample, more))


IMAGE_TEXTS = CardKind(IMAGE_TEXT, _block, _numbers, shown=lambda record: record.image, **said_of(IMAGE_TEXT))
