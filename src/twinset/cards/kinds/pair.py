"""Pairs on sheets and cards: images side by side, captions below, the words that differ marked."""

import itertools
from collections.abc import Sequence
from typing import Any

import polars as pl

from twinset.cards.kinds.kind import CardKind, said_of
from twinset.cards.kinds.statistics import FREQUENT, WORD, how_often, joined, told_blind, word_counts
from twinset.cards.sheet import Block, Cell, mark_difference, noted
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.generators.words_alone.guesses import sign_test

LEVEL = 0.001  # of the whole table: the chance that a balanced subset shows any word in it

# Words that carry the grammar of nearly every caption and so say nothing of what a subset is about.
# fmt: off
_GRAMMAR = (
    "a", "an", "and", "are", "as", "at", "be", "been", "being", "by", "for", "from", "her",
    "his", "in", "into", "is", "it", "its", "of", "on", "or", "that", "the", "their", "them",
    "there", "these", "they", "this", "to", "was", "were", "which", "while", "who", "with",
)
# fmt: on


def word_uses(rows: pl.DataFrame) -> pl.DataFrame:
    """Words with the pairs that have them in either caption, caption 0 alone or caption 1 alone; most pairs first."""
    first, second = (pl.col(name).str.to_lowercase().str.extract_all(WORD) for name in PAIR.texts)
    where = {
        "either": first.list.set_union(second),
        "only0": first.list.set_difference(second),
        "only1": second.list.set_difference(first),
    }
    counted = [
        rows.select(word=words).explode("word").drop_nulls().group_by("word").len(name) for name, words in where.items()
    ]
    uses = counted[0].join(counted[1], "word", "left").join(counted[2], "word", "left").fill_null(0)
    return uses.sort("either", "word", descending=[True, False])


def lopsided(uses: pl.DataFrame, most: int) -> list[dict[str, Any]]:
    """At most ``most`` words whose two sides differ significantly, those with the largest difference first.

    A two-sided sign test of each word's pairs in which it stands on one side alone, Bonferroni-corrected for the number
    of words. Pairs of one video are counted as if they were independent, which makes the test somewhat lenient.
    """
    differing = [use for use in uses.iter_rows(named=True) if sign_test(use["only0"], use["only1"]) * len(uses) < LEVEL]
    return sorted(differing, key=lambda use: (-abs(use["only0"] - use["only1"]), use["word"]))[:most]


def fewest(words: int) -> int:
    """Pairs that one of ``words`` words must stand in, on one side alone, before `lopsided` can name it."""
    return next(count for count in itertools.count(1) if sign_test(0, count) * words < LEVEL)


def _numbers(rows: pl.DataFrame, records: Sequence[PairRecord]) -> dict[str, Any]:
    """earlier0: share (0-1) of pairs whose image 0 comes first in time, None without time."""
    uses = word_uses(rows)
    timed = [record for record in records if record.image0.pts >= 0 and record.image1.pts >= 0]
    return {
        "caption_words": word_counts(joined(rows, PAIR.texts)),
        "distinct_captions": joined(rows, PAIR.texts).n_unique(),
        "distinct_images": joined(rows, PAIR.hashed).n_unique(),
        "frequent": uses.filter(~pl.col("word").is_in(_GRAMMAR)).head(FREQUENT).to_dicts(),
        "lopsided": lopsided(uses, FREQUENT),
        "fewest": fewest(len(uses)),
        "changes": how_often(record.change for record in records),
        "earlier0": sum(record.image0.pts < record.image1.pts for record in timed) / len(timed) if timed else None,
        **told_blind(rows, PAIR.texts),
    }


def _block(pair: Stored[PairRecord]) -> Block:
    sides = mark_difference(*(pair.texts[name] for name in PAIR.texts))
    cells = [
        Cell(image=image, words=words, side=side)
        for side, (image, words) in enumerate(zip(pair.images.values(), sides, strict=True))
    ]
    return Block(pair.key, cells, 2, noted(pair, pair.json.change))


PAIRS = CardKind(PAIR, _block, _numbers, shown=lambda record: record.image0, **said_of(PAIR))
