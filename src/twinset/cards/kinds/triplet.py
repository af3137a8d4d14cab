"""Triplets on sheets and cards: reference and target side by side, the condition below."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from twinset.cards.kinds.kind import CardKind, said_of
from twinset.cards.kinds.statistics import LONGEST, WORD, condition_numbers, how_often, joined, repeats, share_of_top
from twinset.cards.sheet import Block, Cell, noted, words
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.triplet import PARTS, TRIPLET, TripletRecord

_IDS, _CAPTIONS = ([f"{part}_{of}" for part in PARTS] for of in ("id", "caption"))


def _numbers(rows: pl.DataFrame, _records: Sequence[Any]) -> dict[str, Any]:
    """said_of_reference: share (0-1) of triplets whose condition ends with a word of the reference's caption."""
    reference, target, distractor = map(pl.col, _IDS)
    condition, caption = (pl.col(name).str.to_lowercase().str.extract_all(WORD) for name in ("condition", _CAPTIONS[0]))
    uses = repeats(joined(rows, _IDS[:2]))
    again = (distractor == reference) | (distractor == target)
    return {
        **condition_numbers(rows),
        "image_triplets": how_often(uses),
        "top_images_share": share_of_top(uses, 10),
        "distinct_images": len(repeats(joined(rows, _IDS))),
        "distinct_captions": len(repeats(joined(rows, _CAPTIONS))),
        "said_of_reference": rows.select(caption.list.contains(condition.list.last())).to_series().mean() or 0.0,
        "same_image": rows.filter(reference == target).height,
        "distractor_again": rows.filter((distractor != "") & again).height,
    }


def _block(triplet: Stored[TripletRecord]) -> Block:
    cells = [
        Cell(part, triplet.images[part], words(triplet.json.captions.get(part, "")))
        for part in PARTS
        if part in triplet.images
    ]
    condition = Cell("condition", words=words(triplet.texts["condition"], True))
    # Of a caption with several subjects it is not plain which one reference and target share.
    relation = triplet.json.provenance.get("target")
    subject = relation.get("subject") if isinstance(relation, dict) else None
    shared = f"subject {subject}"[:LONGEST] if isinstance(subject, str) else ""
    scores = [f"{name} {value:.2f}" for name, value in sorted(triplet.json.scores.items())]
    return Block(triplet.key, [*cells, condition], len(cells), noted(triplet, shared, *scores))


TRIPLETS = CardKind(TRIPLET, _block, _numbers, shown=lambda record: record.images["target"], **said_of(TRIPLET))
