"""Templates on sheets and cards: reference and condition at the left, the gallery beside it with the right answer."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from twinset.cards.kinds.kind import CardKind, said_of
from twinset.cards.kinds.statistics import FREQUENT, condition_numbers, how_often, joined, repeats
from twinset.cards.sheet import Block, Cell, words
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.template import TEMPLATE, TemplateRecord
from twinset.generators.markdown import ranked

ACROSS = 5  # images of a gallery side by side


def _numbers(rows: pl.DataFrame, records: Sequence[TemplateRecord]) -> dict[str, Any]:
    """galleries: templates by the number of images in their gallery, the target included."""
    _reference, target, *distractors = TEMPLATE.hashed
    galleries = rows.select(1 + pl.sum_horizontal(pl.col(distractors) != "")).to_series()
    # An image that is in a template twice, such as reference and distractor, counts once.
    images = rows.with_row_index().unpivot(TEMPLATE.hashed, index="index").unique(["index", "value"])
    uses = repeats(images["value"])
    types = Counter(str(case.provenance["attribute_type"]) for case in records if "attribute_type" in case.provenance)
    return {
        **condition_numbers(rows),
        "galleries": how_often(galleries),
        "image_templates": how_often(uses),
        "distinct_images": len(uses),
        "distracting_targets": rows[target].is_in(joined(rows, distractors).unique().implode()).mean() or 0.0,
        "types": ranked(types, FREQUENT),
    }


def _block(template: Stored[TemplateRecord]) -> Block:
    images = dict(template.images)
    condition = words(template.texts["condition"], True)
    reference = Cell("reference", images.pop("reference"), condition, outline="reference")
    gallery = [
        Cell(role, image, outline="right") if role == "target" else Cell("distractor", image, outline="other")
        for role, image in images.items()
    ]
    cells: list[Cell] = []
    for start in range(0, len(gallery), ACROSS):
        cells += [reference if start == 0 else Cell(), *gallery[start : start + ACROSS]]
    simple = {name: value for name, value in template.json.provenance.items() if isinstance(value, str | int | float)}
    note = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in simple.items())
    return Block(template.key, cells, 1 + ACROSS, note)


TEMPLATES = CardKind(TEMPLATE, _block, _numbers, shown=lambda record: record.images["target"], **said_of(TEMPLATE))
