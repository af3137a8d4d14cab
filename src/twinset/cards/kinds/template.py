"""Templates on sheets and cards: reference and condition at the left, the gallery beside it with the right answer."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from twinset.cards.kinds.kind import (
    FREQUENT,
    CardKind,
    ConditionStatistics,
    condition_panels,
    count_conditions,
    how_often,
    records_of,
)
from twinset.cards.plots import Counts
from twinset.cards.sheet import Block, Cell, words
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.template import TEMPLATE, TemplateRecord
from twinset.contracts.markdown import ranked
from twinset.shards.read import index_rows
from twinset.shards.storage.store import Store

ACROSS = 5  # images of a gallery side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStatistics(ConditionStatistics):
    """What a researcher should know of the templates of a subset before trusting a score.

    galleries: templates by the number of images in their gallery, the target included. image_templates: images by the
    number of templates that they are in. distracting_targets: share (0-1) of the templates whose target is a distractor
    of another template.
    sampled: templates whose images were looked at, evenly spread; image_sizes: these by (width, height) of the target;
    types: these by the type of their attribute, none for templates about objects.
    """

    galleries: Counts
    image_templates: Counts
    distinct_images: int
    distracting_targets: float
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]
    types: Counts


def statistics(store: Store, subset: str) -> TemplateStatistics:
    """Count what the card says of a subset of templates."""
    galleries, templates = Counter[int](), Counter[str]()  # templates: of images
    targets: list[str] = []
    distractors: set[str] = set()
    for row in index_rows(store, subset, TEMPLATE.hashed):
        reference, target, *others = (row[name] for name in TEMPLATE.hashed)
        gallery = {image for image in others if image}
        galleries[1 + sum(map(bool, others))] += 1
        templates.update({reference, target} | gallery)
        targets.append(target)
        distractors |= gallery
    sampled: list[TemplateRecord] = records_of(store, subset, TEMPLATE)
    types = Counter(str(one.provenance["attribute_type"]) for one in sampled if "attribute_type" in one.provenance)
    return TemplateStatistics(
        **count_conditions(store, subset),
        galleries=dict(sorted(galleries.items())),
        image_templates=how_often(templates.values()),
        distinct_images=len(templates),
        distracting_targets=sum(target in distractors for target in targets) / len(targets) if targets else 0.0,
        sampled=len(sampled),
        image_sizes=how_often(one.images["target"].size for one in sampled),
        types=ranked(types, FREQUENT),
    )


def _block(template: Stored[TemplateRecord]) -> Block:
    images = dict(template.images)
    reference = Cell(
        "reference", images.pop("reference"), words(template.texts["condition"], True), outline="reference"
    )
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


def _panels(numbers: TemplateStatistics, group: str) -> dict[str, Counts]:
    types = {f"types of attributes (of {numbers.sampled:,} templates)": numbers.types} if numbers.types else {}
    return {**condition_panels(numbers, group), **types}


TEMPLATES = CardKind(
    sample=TEMPLATE,
    what=(
        "templates",
        "a reference image, a condition in words, and a gallery of images of which one, the target, is right",
    ),
    tasks=("image-feature-extraction",),
    tags=("conditional-image-similarity", "composed-image-retrieval", "image-retrieval"),
    columns={"condition": "What to look for, given the reference.", "task": "Task of GeneCIS."},
    block=_block,
    legend={"": "At the left the reference with its condition; in the gallery the target, the right answer, in green."},
    statistics=statistics,
    panels=_panels,
)
