"""Text pairs on sheets and cards: the image, its caption and the negative one, the words that differ marked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from twinset.cards.kinds.kind import CardKind, how_often, records_of
from twinset.cards.plots import Counts
from twinset.cards.sheet import LONGEST_TEXT, Block, Cell, in_group, mark_difference, words_of
from twinset.cards.words_alone import index_frame
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.text_pair import TEXT_PAIR, TextPairRecord
from twinset.contracts.markdown import ranked
from twinset.generators.words_alone.guesses import CAPTION, NEGATIVE, Guess, gaps, guesses, same_bag, scores_among
from twinset.shards.read import index_columns, index_rows
from twinset.shards.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPairStatistics:
    """What a researcher should know of the text pairs of a subset.

    caption_words, negative_words: captions of each side by their number of words. group_pairs: groups by their
    number of pairs. kinds: pairs by type and subtype, such as ``replace obj``.
    given_away: blind guesses of the true caption. same_bag: pairs whose captions share one bag of words.
    sampled: pairs whose images were looked at, evenly spread; image_sizes: these by (width, height).
    """

    caption_words: Counts
    negative_words: Counts
    group_pairs: Counts
    kinds: Counts
    given_away: Mapping[str, Guess]
    same_bag: int
    distinct_images: int
    distinct_captions: int
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]


def statistics(store: Store, subset: str) -> TextPairStatistics:
    """Count what the card says of a subset of text pairs; captions are read as a stream."""
    words, negative_words, groups, kinds = Counter[int](), Counter[int](), Counter[str](), Counter[str]()
    captions, images = set[int](), set[int]()  # 64-bit hashes: millions of whole captions would fill the memory
    same_bags = 0
    for row in index_rows(store, subset, ("group", *TEXT_PAIR.described, *TEXT_PAIR.hashed)):
        said, negative = words_of(row["caption"]), words_of(row["negative_caption"])
        words[len(said)] += 1
        negative_words[len(negative)] += 1
        same_bags += same_bag(said, negative)
        groups[row["group"]] += 1
        kinds[f"{row['type']} {row['subtype']}".strip() or "unknown"] += 1
        captions |= {hash(row["caption"]), hash(row["negative_caption"])}
        images.add(hash(row["image_sha256"] or row["image_id"]))
    scores = scores_among(index_columns(store, subset))
    numbers = [score + side for score in scores for side in (CAPTION, NEGATIVE)]
    rows = index_frame(store, subset, ("group", "caption", "negative_caption", *numbers))
    rows = rows.cast(dict.fromkeys(numbers, float))
    sampled: list[TextPairRecord] = records_of(store, subset, TEXT_PAIR)
    return TextPairStatistics(
        caption_words=dict(sorted(words.items())),
        negative_words=dict(sorted(negative_words.items())),
        group_pairs=how_often(groups.values()),
        kinds=ranked(kinds, len(kinds)),
        given_away=guesses(rows.select("group", **gaps("caption", "negative_caption", scores))),
        same_bag=same_bags,
        distinct_images=len(images),
        distinct_captions=len(captions),
        sampled=len(sampled),
        image_sizes=how_often(one.image.size for one in sampled),
    )


def _block(pair: Stored[TextPairRecord]) -> Block:
    sides = mark_difference(*(pair.texts[name][:LONGEST_TEXT] for name in TEXT_PAIR.texts))
    cells = [Cell(image=pair.images["image"], words=sides[0], side=0), Cell("negative", words=sides[1], side=1)]
    kind = f"{pair.json.type} {pair.json.subtype}".strip()
    noted = [*([kind] if kind else []), *in_group(pair.key, pair.json.group)]
    return Block(pair.key, cells, 2, " | ".join(noted))


def _panels(numbers: TextPairStatistics, _group: str) -> dict[str, Counts]:
    return {
        "captions by number of words": numbers.caption_words,
        "negative captions by number of words": numbers.negative_words,
        "pairs by kind": numbers.kinds,
    }


TEXT_PAIRS = CardKind(
    sample=TEXT_PAIR,
    what=("text pairs", "an image, a caption of it, and a negative caption, meant to be false in one detail"),
    tasks=("image-to-text", "zero-shot-image-classification"),
    tags=("minimal-pairs", "hard-negatives", "image-text-matching"),
    columns={
        "caption": "Caption of the image.",
        "negative_caption": "Caption that is meant to be false of the image in one detail.",
        "type": "What was done to the caption: replace, swap or add.",
        "subtype": "To what: obj, att or rel.",
        "image_id": "Id of the image, as the source of the captions calls it.",
    },
    block=_block,
    legend={"": "The caption stands below its image, the negative one beside it."},
    statistics=statistics,
    panels=_panels,
)
