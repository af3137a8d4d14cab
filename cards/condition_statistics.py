"""Numbers that describe finished triplets and templates, counted from their index and a spread of their images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cards.pair_statistics import SAMPLED
from cards.summary import TemplateStatistics, TripletStatistics
from cards.word_diff import words_of
from shards.kinds.reading import StoredPair
from shards.kinds.template import TEMPLATE
from shards.kinds.triplet import PARTS, TRIPLET
from shards.read import read_spread
from shards.storage.store import Store
from stages.index import index_rows

FREQUENT = 12
LONGEST = 200  # characters of a condition that is counted


def triplet_statistics(store: Store, subset: str) -> TripletStatistics:
    """Describe triplets whose index has been written (`stages.index.write_index`), which is read as a stream."""
    conditions: Counter[str] = Counter()
    # Of images, as reference or target: by 64-bit hash, since millions of whole ids or captions would fill the memory.
    places: Counter[int] = Counter()
    words: Counter[int] = Counter()
    others: set[int] = set()
    captions: set[int] = set()
    count = said = same = again = distractors = 0
    for row in index_rows(store, subset, TRIPLET.described):
        reference, target, distractor = (row[f"{part}_id"] for part in PARTS)
        condition = words_of(row["condition"])
        conditions[row["condition"][:LONGEST]] += 1
        words[len(condition)] += 1
        places.update((hash(reference), hash(target)))
        captions |= {hash(caption) for part in PARTS if (caption := row[f"{part}_caption"])}
        said += bool(condition) and condition[-1] in words_of(row["reference_caption"])
        same += reference == target
        if distractor:
            others.add(hash(distractor))
            distractors += 1
            again += distractor in (reference, target)
        count += 1
    sampled, sizes, _ = _looked_at(store, subset)
    return TripletStatistics(
        condition_words=dict(sorted(words.items())),
        conditions=len(conditions),
        frequent=_most(conditions),
        top_conditions_share=_share_of_top(conditions, 100),
        image_triplets=dict(sorted(Counter(places.values()).items())),
        top_images_share=_share_of_top(places, 10),
        distinct_images=len(others | places.keys()),
        distinct_captions=len(captions),
        said_of_reference=said / count if count else 0.0,
        same_image=same,
        distractor_again=again if distractors else None,
        sampled=sampled,
        image_sizes=sizes,
    )


def template_statistics(store: Store, subset: str) -> TemplateStatistics:
    """As `triplet_statistics`, of templates."""
    conditions: Counter[str] = Counter()
    words: Counter[int] = Counter()
    galleries: Counter[int] = Counter()
    templates: Counter[str] = Counter()  # of images
    targets: list[str] = []
    distractors: set[str] = set()
    for row in index_rows(store, subset, (*TEMPLATE.described, *TEMPLATE.hashed)):
        reference, target, *others = (row[name] for name in TEMPLATE.hashed)
        gallery = {image for image in others if image}
        conditions[row["condition"][:LONGEST]] += 1
        words[len(words_of(row["condition"]))] += 1
        galleries[1 + sum(map(bool, others))] += 1
        templates.update({reference, target} | gallery)
        targets.append(target)
        distractors |= gallery
    sampled, sizes, types = _looked_at(store, subset)
    return TemplateStatistics(
        condition_words=dict(sorted(words.items())),
        conditions=len(conditions),
        frequent=_most(conditions),
        galleries=dict(sorted(galleries.items())),
        image_templates=dict(sorted(Counter(templates.values()).items())),
        distinct_images=len(templates),
        distracting_targets=sum(target in distractors for target in targets) / len(targets) if targets else 0.0,
        sampled=sampled,
        image_sizes=sizes,
        types=types,
    )


def _looked_at(store: Store, subset: str) -> tuple[int, dict[tuple[int, int], int], dict[str, int]]:
    """How many samples were looked at; these by size of the target's picture, and by type of attribute."""
    sampled = [one.json for one in read_spread(store, subset, SAMPLED) if not isinstance(one, StoredPair)]
    sizes = Counter(one.images["target"].size for one in sampled if "target" in one.images)
    types = Counter(str(one.provenance["attribute_type"]) for one in sampled if "attribute_type" in one.provenance)
    return len(sampled), dict(sorted(sizes.items())), _ordered(types.items())


def _most(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(list(_ordered(counts.items()).items())[:FREQUENT])


def _ordered(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(sorted(counts, key=lambda item: (-item[1], item[0])))


def _share_of_top(counts: Mapping[Any, int], part: int) -> float:
    """Share (0-1) of all that the most frequent ``part``-th of the keys hold; at least one key counts."""
    ordered = sorted(counts.values(), reverse=True)
    return sum(ordered[: -(-len(ordered) // part)]) / sum(ordered) if ordered else 0.0
