"""Triplets on sheets and cards: reference and target side by side, the condition below."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from twinset.cards.kinds.kind import (
    LONGEST,
    CardKind,
    ConditionStatistics,
    condition_panels,
    count_conditions,
    how_often,
    records_of,
    share_of_top,
)
from twinset.cards.plots import Counts
from twinset.cards.sheet import Block, Cell, in_group, words, words_of
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.triplet import PARTS, TRIPLET, TripletRecord
from twinset.shards.read import index_rows
from twinset.shards.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TripletStatistics(ConditionStatistics):
    """What a researcher should know of the triplets of a subset before training on them.

    image_triplets: images by the number of triplets that they are reference or target of; top_images_share: share of
    these places that the tenth of the images with most has. distinct_images: with distractors.
    said_of_reference: share of triplets whose condition ends with a word of the reference's caption. same_image:
    triplets with one image as reference and target; distractor_again: with one of these as distractor, None without.
    sampled: triplets whose images were looked at, evenly spread; image_sizes: these by (width, height) of the target.
    """

    image_triplets: Counts
    top_images_share: float
    distinct_images: int
    distinct_captions: int
    said_of_reference: float
    same_image: int
    distractor_again: int | None
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]


def statistics(store: Store, subset: str) -> TripletStatistics:
    """Count what the card says of a subset of triplets, which are read as a stream."""
    # Of images, as reference or target: by 64-bit hash, since millions of whole ids or captions would fill the memory.
    places = Counter[int]()
    others, captions = set[int](), set[int]()
    count = said = same = again = distractors = 0
    for row in index_rows(store, subset, TRIPLET.described):
        reference, target, distractor = (row[f"{part}_id"] for part in PARTS)
        condition = words_of(row["condition"])
        places.update((hash(reference), hash(target)))
        captions |= {hash(caption) for part in PARTS if (caption := row[f"{part}_caption"])}
        said += bool(condition) and condition[-1] in words_of(row["reference_caption"])
        same += reference == target
        if distractor:
            others.add(hash(distractor))
            distractors += 1
            again += distractor in (reference, target)
        count += 1
    sampled: list[TripletRecord] = records_of(store, subset, TRIPLET)
    return TripletStatistics(
        **count_conditions(store, subset),
        image_triplets=how_often(places.values()),
        top_images_share=share_of_top(places.values(), 10),
        distinct_images=len(others | places.keys()),
        distinct_captions=len(captions),
        said_of_reference=said / count if count else 0.0,
        same_image=same,
        distractor_again=again if distractors else None,
        sampled=len(sampled),
        image_sizes=how_often(one.images["target"].size for one in sampled),
    )


def _block(triplet: Stored[TripletRecord]) -> Block:
    cells = [
        Cell(part, triplet.images[part], words(triplet.json.captions.get(part, "")))
        for part in PARTS
        if part in triplet.images
    ]
    columns = len(cells)
    cells.append(Cell("condition", words=words(triplet.texts["condition"], True)))
    # Of a caption with several subjects it is not plain which one reference and target share.
    relation = triplet.json.provenance.get("target")
    subject = relation.get("subject") if isinstance(relation, dict) else None
    shared = [f"subject {subject}"[:LONGEST]] if isinstance(subject, str) else []
    scores = [f"{name} {value:.2f}" for name, value in sorted(triplet.json.scores.items())]
    note = [*in_group(triplet.key, triplet.json.group), *shared, *scores]
    return Block(triplet.key, cells, columns, " | ".join(note))


TRIPLETS = CardKind(
    sample=TRIPLET,
    what=("triplets", "a reference image, a condition in words, and the target image that the condition leads to"),
    tasks=("image-feature-extraction",),
    tags=("conditional-image-similarity", "composed-image-retrieval"),
    columns={
        "condition": "What leads from the reference to the target.",
        **{f"{part}_caption": f"Caption of the {part}." for part in PARTS},
        **{f"{part}_id": f"Id of the {part} at its source." for part in PARTS},
    },
    block=_block,
    legend={
        "": "A reference and the target that the condition below leads to.",
        "distractor": "A distractor fits the condition or the reference, but not both.",
    },
    statistics=statistics,
    panels=condition_panels,
)
