"""GeneCIS's own templates of Change an Object, checked for all that needs no annotations."""

import json
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.generators.galleries.invariants import check
from twinset.generators.galleries.panoptic import condition_name

PUBLISHED = Path(__file__).parents[3] / "../shared/data/genecis/change_object.json"

# The 133 categories of COCO Panoptic, as its annotation files name them.
COCO = """person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop
sign, parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv, laptop,
mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase, scissors,
teddy bear, hair drier, toothbrush, banner, blanket, bridge, cardboard, counter, curtain, door-stuff, floor-wood,
flower, fruit, gravel, house, light, mirror-stuff, net, pillow, platform, playingfield, railroad, river, road, roof,
sand, sea, shelf, snow, stairs, tent, towel, wall-brick, wall-stone, wall-tile, wall-wood, water-other,
window-blind, window-other, tree-merged, fence-merged, ceiling-merged, sky-other-merged, cabinet-merged,
table-merged, floor-other-merged, pavement-merged, mountain-merged, grass-merged, dirt-merged, paper-merged,
food-other-merged, building-other-merged, rock-merged, wall-other-merged, rug-merged"""


@pytest.fixture(scope="module")
def published() -> list[dict[str, Any]]:
    if not PUBLISHED.exists():
        pytest.skip("GeneCIS's change_object.json is not at hand")
    templates: list[dict[str, Any]] = json.loads(PUBLISHED.read_text())
    return templates


def test_published_templates_keep_the_rules_but_repeat_themselves(published: list[dict[str, Any]]) -> None:
    conditions = {condition_name(" ".join(name.split())) for name in COCO.split(",")}
    problems = check(published, "change-object", conditions=conditions)
    assert Counter(problem.rule for problem in problems) == {"template-again": 167, "target-again": 1}
    (twice,) = (problem for problem in problems if problem.rule == "target-again")
    # A toaster: the target is its own last distractor, that is, both close and far.
    assert (twice.template, published[19]["condition"]) == (19, "toaster")


def test_categories_that_differ_are_conditions_that_differ() -> None:
    names = [" ".join(name.split()) for name in COCO.split(",")]
    assert len({condition_name(name) for name in names}) == len(names) == 133


def test_published_distractors_are_ranked_and_targets_are_not_first(published: list[dict[str, Any]]) -> None:
    """The near distractors of all templates of a reference are in one order; many targets come late in it."""
    order: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    for entry in published:
        near = [image["val_image_id"] for image in entry["gallery"][:9]]
        order[entry["reference"]["val_image_id"]] |= set(combinations(near, 2))
    assert not any((later, sooner) in pairs for pairs in order.values() for sooner, later in pairs)
    behind = 0
    for entry in published:
        target, pairs = entry["target"]["val_image_id"], order[entry["reference"]["val_image_id"]]
        behind += any((image["val_image_id"], target) in pairs for image in entry["gallery"][:9])
    assert behind == 786  # most of the others cannot be placed


def test_published_references_come_again(published: list[dict[str, Any]]) -> None:
    """Why ours do too: 1,960 templates have 218 references."""
    assert len(published) == 1960
    assert len({entry["reference"]["val_image_id"] for entry in published}) == 218
