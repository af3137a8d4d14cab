"""Text pairs on sheets and cards: the image, its caption and the negative one, the words that differ marked."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from twinset.cards.kinds.image_text import image_of_caption
from twinset.cards.kinds.kind import CardKind, said_of
from twinset.cards.kinds.statistics import joined, told_blind, word_counts
from twinset.cards.sheet import Block, Cell, mark_difference, noted
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.text_pair import TEXT_PAIR, TextPairRecord
from twinset.generators.words_alone.guesses import CAPTION, NEGATIVE, scores_among


def _numbers(rows: pl.DataFrame, _records: Sequence[Any]) -> dict[str, Any]:
    """kinds: pairs by type and subtype, such as ``replace obj``. caption_words, negative_words: of each side."""
    kind = pl.concat_str("type", "subtype", separator=" ").str.strip_chars().replace("", "unknown").alias("kind")
    scores = scores_among(rows.columns)
    rows = rows.cast({score + side: pl.Float64 for score in scores for side in (CAPTION, NEGATIVE)})  # of no rows, text
    kinds = rows.select(kind)["kind"].value_counts(name="times").sort("times", "kind", descending=[True, False])
    return {
        "kinds": dict(kinds.iter_rows()),
        "caption_words": word_counts(rows["caption"]),
        "negative_words": word_counts(rows["negative_caption"]),
        "distinct_images": rows.select(image_of_caption()).n_unique(),
        "distinct_captions": joined(rows, TEXT_PAIR.texts).n_unique(),
        **told_blind(rows, TEXT_PAIR.texts, scores),
    }


def _block(pair: Stored[TextPairRecord]) -> Block:
    sides = mark_difference(*(pair.texts[name] for name in TEXT_PAIR.texts))
    cells = [Cell(image=pair.images["image"], words=sides[0], side=0), Cell(words=sides[1], side=1)]
    return Block(pair.key, cells, 1, noted(pair, f"{pair.json.type} {pair.json.subtype}".strip()))


TEXT_PAIRS = CardKind(TEXT_PAIR, _block, _numbers, shown=lambda record: record.image, **said_of(TEXT_PAIR))
