"""Numbers that describe finished pairs, counted from their index and from a spread of their images."""

from __future__ import annotations

from collections import Counter

from cards.summary import Statistics, WordUse
from cards.word_balance import lopsided
from cards.word_diff import words_of
from shards.kinds.reading import pairs
from shards.read import read_spread
from shards.storage.store import Store
from stages.index import index_rows

SAMPLED = 64  # pairs whose images are looked at: each may cost a read of its whole tar
WORDS = 12
_COLUMNS = ("group", "caption0", "caption1", "image0_sha256", "image1_sha256")

# Words that carry the grammar of nearly every caption and so say nothing of what a subset is about.
# fmt: off
_GRAMMAR = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "been", "being", "by", "for", "from", "her",
    "his", "in", "into", "is", "it", "its", "of", "on", "or", "that", "the", "their", "them",
    "there", "these", "they", "this", "to", "was", "were", "which", "while", "who", "with",
})
# fmt: on


def statistics(store: Store, subset: str) -> Statistics:
    """Describe a subset whose index has been written (`stages.index.write_index`); captions are read as a stream."""
    caption_words: Counter[int] = Counter()
    groups: Counter[str] = Counter()
    only0: Counter[str] = Counter()
    only1: Counter[str] = Counter()
    either: Counter[str] = Counter()
    captions: set[int] = set()  # 64-bit hashes: millions of whole captions would fill the memory
    images: set[int] = set()
    count = longer0 = 0
    for row in index_rows(store, subset, _COLUMNS):
        words0, words1 = words_of(row["caption0"]), words_of(row["caption1"])
        caption_words[len(words0)] += 1
        caption_words[len(words1)] += 1
        set0, set1 = frozenset(words0), frozenset(words1)
        only0.update(set0 - set1)
        only1.update(set1 - set0)
        either.update(set0 | set1)
        groups[row["group"]] += 1
        captions |= {hash(row["caption0"]), hash(row["caption1"])}
        images |= {hash(row["image0_sha256"]), hash(row["image1_sha256"])}
        longer0 += len(words0) > len(words1)
        count += 1
    uses = [WordUse(word, only0[word], only1[word], seen) for word, seen in either.items()]
    sizes = sorted(groups.values(), reverse=True)
    sampled = list(pairs(read_spread(store, subset, SAMPLED), "this"))
    timed = [one.json for one in sampled if one.json.image0.pts >= 0 and one.json.image1.pts >= 0]
    return Statistics(
        caption_words=dict(sorted(caption_words.items())),
        group_pairs=dict(sorted(Counter(sizes).items())),
        top_groups_share=sum(sizes[: -(-len(sizes) // 10)]) / count if count else 0.0,
        frequent=tuple(
            sorted((use for use in uses if use.word not in _GRAMMAR), key=lambda use: (-use.either, use.word))[:WORDS]
        ),
        lopsided=lopsided(uses, WORDS),
        longer0=longer0 / count if count else 0.0,
        distinct_captions=len(captions),
        distinct_images=len(images),
        sampled=len(sampled),
        image_sizes=dict(sorted(Counter(one.json.image0.size for one in sampled).items())),
        changes=dict(sorted(Counter(one.json.change for one in sampled).items())),
        earlier0=sum(one.image0.pts < one.image1.pts for one in timed) / len(timed) if timed else None,
    )
