"""Pairs on sheets and cards: images side by side, captions below, the words that differ marked."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinset.cards.kinds.kind import FREQUENT, CardKind, how_often, records_of, share_of_top
from twinset.cards.plots import Counts
from twinset.cards.sheet import LONGEST_TEXT, Block, Cell, boxed, in_group, mark_difference, words_of
from twinset.cards.words_alone import index_frame
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.pair import PAIR, PairRecord
from twinset.generators.words_alone.guesses import Guess, gaps, guesses, same_bag, sign_test
from twinset.shards.read import index_rows
from twinset.shards.storage.store import Store

LEVEL = 0.001  # of the whole table: the chance that a balanced subset shows any word in it


@dataclass(frozen=True, slots=True)
class WordUse:
    """A word and the pairs in which it stands in caption 0 alone, caption 1 alone, or in either."""

    word: str
    only0: int
    only1: int
    either: int


def lopsided(uses: Sequence[WordUse], most: int) -> tuple[WordUse, ...]:
    """At most ``most`` words whose two sides differ significantly, those with the largest difference first.

    A two-sided sign test of each word's pairs in which it stands on one side alone, Bonferroni-corrected for the number
    of words. Pairs of one video are counted as if they were independent, which makes the test somewhat lenient.
    """
    unbalanced = [use for use in uses if sign_test(use.only0, use.only1) * len(uses) < LEVEL]
    return tuple(sorted(unbalanced, key=lambda use: (-abs(use.only0 - use.only1), use.word))[:most])


def fewest(words: int) -> int:
    """Pairs that a word must stand in, always on the same side alone, before `lopsided` can name it.

    Args:
        words: how many different ones are tested.
    """
    return next(count for count in itertools.count(1) if sign_test(0, count) * words < LEVEL)


# Words that carry the grammar of nearly every caption and so say nothing of what a subset is about.
# fmt: off
_GRAMMAR = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "been", "being", "by", "for", "from", "her",
    "his", "in", "into", "is", "it", "its", "of", "on", "or", "that", "the", "their", "them",
    "there", "these", "they", "this", "to", "was", "were", "which", "while", "who", "with",
})
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStatistics:
    """What a researcher should know of the pairs of a subset before trusting a score.

    caption_words: captions by their number of words. group_pairs: groups (videos) by their number of pairs.
    top_groups_share: share (0-1) of the pairs that the largest tenth of the groups has.
    frequent: the words in most pairs. lopsided: the words that stand on one side more often than chance explains
    (`cards.kinds.pair`), so that a model could guess the side without looking; fewest: the pairs that a word must
    stand in before it can be one of them.
    distinct_captions, distinct_images: over both sides. same_bag: pairs whose captions share one bag of words.
    given_away: how often a caption's place is guessed from lengths.
    sampled: pairs whose images were looked at, evenly spread; image_sizes: these by (width, height) of image 0;
    changes: these by what changes; earlier0: share of these whose image 0 comes first in time, None without time.
    """

    caption_words: Counts
    group_pairs: Counts
    top_groups_share: float
    frequent: Sequence[WordUse]
    lopsided: Sequence[WordUse]
    fewest: int
    distinct_captions: int
    distinct_images: int
    same_bag: int
    given_away: Mapping[str, Guess]
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]
    changes: Counts
    earlier0: float | None


def statistics(store: Store, subset: str) -> PairStatistics:
    """Count what the card says of a subset of pairs; captions are read as a stream."""
    caption_words, groups = Counter[int](), Counter[str]()
    only0, only1, either = Counter[str](), Counter[str](), Counter[str]()
    captions, images = set[int](), set[int]()  # 64-bit hashes: millions of whole captions would fill the memory
    same_bags = 0
    for row in index_rows(store, subset, ("group", *PAIR.texts, *PAIR.hashed)):
        words0, words1 = words_of(row["caption0"]), words_of(row["caption1"])
        caption_words.update((len(words0), len(words1)))
        set0, set1 = frozenset(words0), frozenset(words1)
        only0.update(set0 - set1)
        only1.update(set1 - set0)
        either.update(set0 | set1)
        groups[row["group"]] += 1
        captions |= {hash(row[name]) for name in PAIR.texts}
        images |= {hash(row[name]) for name in PAIR.hashed}
        same_bags += same_bag(words0, words1)
    captions_of = index_frame(store, subset, ("group", *PAIR.texts))
    uses = [WordUse(word, only0[word], only1[word], seen) for word, seen in either.items()]
    frequent = sorted((use for use in uses if use.word not in _GRAMMAR), key=lambda use: (-use.either, use.word))
    sampled: list[PairRecord] = records_of(store, subset, PAIR)
    timed = [one for one in sampled if one.image0.pts >= 0 and one.image1.pts >= 0]
    return PairStatistics(
        caption_words=dict(sorted(caption_words.items())),
        group_pairs=how_often(groups.values()),
        top_groups_share=share_of_top(groups.values(), 10),
        frequent=frequent[:FREQUENT],
        lopsided=lopsided(uses, FREQUENT),
        fewest=fewest(len(uses)),
        distinct_captions=len(captions),
        distinct_images=len(images),
        same_bag=same_bags,
        given_away=guesses(captions_of.select("group", **gaps(*PAIR.texts))),
        sampled=len(sampled),
        image_sizes=how_often(one.image0.size for one in sampled),
        changes=how_often(one.change for one in sampled),
        earlier0=sum(one.image0.pts < one.image1.pts for one in timed) / len(timed) if timed else None,
    )


def _block(pair: Stored[PairRecord]) -> Block:
    sides = mark_difference(*(pair.texts[name][:LONGEST_TEXT] for name in PAIR.texts))
    boxes = [(one.left, one.top, one.width, one.height) for one in pair.json.boxes]
    cells = [
        Cell(image=boxed(image, pair.key, boxes) if boxes else image, words=words, side=side)
        for side, (image, words) in enumerate(zip(pair.images.values(), sides, strict=True))
    ]
    held = dict.fromkeys(one.difference for one in pair.json.boxes)
    noted = [pair.json.change, *held, *in_group(pair.key, pair.json.group)]
    return Block(pair.key, cells, 2, " | ".join(filter(None, noted)))


def _panels(numbers: PairStatistics, group: str) -> dict[str, Counts]:
    return {
        "captions by number of words": numbers.caption_words,
        f"{group}s by number of pairs": numbers.group_pairs,
    }


PAIRS = CardKind(
    sample=PAIR,
    what=("minimal pairs", "two images and two captions that tell them apart"),
    tasks=("image-to-text", "zero-shot-image-classification"),
    tags=("minimal-pairs", "image-text-matching"),
    columns={"caption0": "Caption of image 0.", "caption1": "Caption of image 1."},
    block=_block,
    legend={},
    statistics=statistics,
    panels=_panels,
)
