"""Templates on sheets and cards: reference and condition at the left, the gallery beside it with the right answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cards.block import Block, Cell, words
from cards.kinds.kind import LONGEST, SAMPLED, CardKind, how_often, most_frequent
from cards.plots import Histogram, Panel, Ranking
from cards.word_diff import words_of
from shards.kinds.kind import Stored
from shards.kinds.template import TEMPLATE, TemplateRecord
from shards.read import index_rows, of_kind, read_spread
from shards.storage.store import Store

ACROSS = 5  # images of a gallery side by side


@dataclass(frozen=True, slots=True)
class TemplateStatistics:
    """What a researcher should know of templates before trusting a score.

    condition_words: templates by the words of their condition. conditions: how many different ones; frequent: those of
    most templates. galleries: templates by the number of images in their gallery, the target included.
    image_templates: images by the number of templates that they are in. distinct_images. distracting_targets: share
    (0-1) of the templates whose target is a distractor of another template.
    sampled: templates whose images were looked at, evenly spread; image_sizes: these by (width, height) of the target;
    types: these by the type of their attribute, none for templates about objects.
    """

    condition_words: Mapping[int, int]
    conditions: int
    frequent: Mapping[str, int]
    galleries: Mapping[int, int]
    image_templates: Mapping[int, int]
    distinct_images: int
    distracting_targets: float
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]
    types: Mapping[str, int]


def statistics(store: Store, subset: str) -> TemplateStatistics:
    """Count the templates of a subset whose index is written."""
    conditions, condition_words, galleries = Counter[str](), Counter[int](), Counter[int]()
    templates = Counter[str]()  # of images
    targets: list[str] = []
    distractors: set[str] = set()
    for row in index_rows(store, subset, (*TEMPLATE.described, *TEMPLATE.hashed)):
        reference, target, *others = (row[name] for name in TEMPLATE.hashed)
        gallery = {image for image in others if image}
        conditions[row["condition"][:LONGEST]] += 1
        condition_words[len(words_of(row["condition"]))] += 1
        galleries[1 + sum(map(bool, others))] += 1
        templates.update({reference, target} | gallery)
        targets.append(target)
        distractors |= gallery
    sampled: list[TemplateRecord] = [one.json for one in of_kind(read_spread(store, subset, SAMPLED), TEMPLATE, "this")]
    types = Counter(str(one.provenance["attribute_type"]) for one in sampled if "attribute_type" in one.provenance)
    return TemplateStatistics(
        condition_words=dict(sorted(condition_words.items())),
        conditions=len(conditions),
        frequent=most_frequent(conditions),
        galleries=dict(sorted(galleries.items())),
        image_templates=how_often(templates.values()),
        distinct_images=len(templates),
        distracting_targets=sum(target in distractors for target in targets) / len(targets) if targets else 0.0,
        sampled=len(sampled),
        image_sizes=how_often(one.images["target"].size for one in sampled),
        types=most_frequent(types),
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


def _panels(numbers: TemplateStatistics, _group: str) -> list[Panel]:
    panels: list[Panel] = [
        Histogram("conditions by number of words", numbers.condition_words),
        Ranking("most frequent conditions", numbers.frequent),
    ]
    if numbers.types:
        panels.append(Ranking(f"types of attributes (of {numbers.sampled:,} templates)", numbers.types))
    return panels


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
    across=2,
    legend="At the left the reference with its condition; in the gallery the target, the right answer, in green.",
    statistics=statistics,
    panels=_panels,
)
