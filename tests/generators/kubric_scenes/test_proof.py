"""The proof accepts what is shown and rejects everything else: captions swapped, things hidden, counts wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import trimesh

from twinset.generators.kubric_scenes.proof import Instance, foresee, measure, prove_image
from twinset.generators.kubric_scenes.scene.camera import frame_things
from twinset.generators.kubric_scenes.scene.composition import FOCAL_LENGTH, SENSOR_WIDTH, Standing
from twinset.generators.kubric_scenes.scene.parts import Drawn, Model, NamedAsset, Picture, Refuted, Relation, View

RESOLUTION = 200
RELATIONS: tuple[Relation, ...] = get_args(Relation)
SPOTS = {"left": (-1.4, 0), "right": (1.4, 0), "in-front": (0.1, -2.6), "behind": (0.1, 2.6), "on-top": (0, 0)}
BOX, CAN = NamedAsset("red box", "box"), NamedAsset("blue can", "can")
VIEW = View((0, -1, 1), (0, 0, 0), FOCAL_LENGTH, SENSOR_WIDTH, (0, -1, 1), 2.5, (1, 1, 1), (0.4, 0.4, 0.4))


def model(width: float, depth: float, height: float) -> Model:
    mesh = trimesh.creation.box(extents=(width, depth, height))
    points = np.asarray(mesh.vertices, dtype=np.float64)
    return Model("box", 1.0, (1.0, 0.0, 0.0, 0.0), points, np.asarray(mesh.faces, dtype=np.int32))


def standing(
    thing: NamedAsset, x: float, y: float, *, height: float = 0.0, carried: bool = False, size: float = 0.8
) -> Standing:
    shape = model(size, size, size)
    return Standing(thing, shape, shape.on_floor(x, y, 0.0, height), carried)


def related(relation: Relation) -> list[Standing]:
    x, y = SPOTS[relation]
    on_top = relation == "on-top"
    thing = standing(BOX, x, y, height=0.8 if on_top else 0.0, carried=on_top)
    return [thing, standing(CAN, 0.0, 0.0)]


def seen(things: list[Standing], view: View | None = None) -> tuple[list[Instance], Picture]:
    if view is None:
        view = frame_things(VIEW, np.concatenate([thing.points for thing in things]), 0.5)
    picture = foresee(things, view, RESOLUTION)
    return measure(things, view, picture), picture


def says(relation: Relation) -> Drawn:
    return Drawn("location", BOX, BOX, CAN, relation, relation, 1, 1)


def counts(count: int) -> Drawn:
    return Drawn("counting", BOX, BOX, None, "", "", count, count)


def row(count: int) -> list[Standing]:
    return [standing(BOX, 1.3 * place, 0.0) for place in range(count)]


@pytest.mark.parametrize("shown", RELATIONS)
def test_a_relation_is_proved_and_every_other_refuted(shown: Relation) -> None:
    instances, picture = seen(related(shown))
    prove_image(says(shown), 0, instances, picture)
    for other in set(RELATIONS) - {shown}:
        assert reason_of(prove_image, says(other), 1, instances, picture) == (
            "not-on-top" if other == "on-top" else "wrong-relation"
        )


def test_things_that_stand_diagonally_are_in_no_relation() -> None:
    instances, picture = seen([standing(BOX, 1.2, -1.6), standing(CAN, 0.0, 0.0)])
    for relation in RELATIONS:
        assert reason_of(prove_image, says(relation), 0, instances, picture), relation


def test_what_seems_to_stand_on_what_is_before_it_is_refuted() -> None:
    reasons = []
    for away in np.linspace(0.9, 3.0, 15):
        instances, picture = seen([standing(BOX, 0.1, float(away)), standing(CAN, 0.0, 0.0)])
        reasons.append(reason_of(prove_image, says("behind"), 0, instances, picture))
    assert reasons[0] in ("hidden", "foot-hidden") and reasons[-1] == "" and "foot-hidden" in reasons
    assert reasons == sorted(reasons, key=["hidden", "foot-hidden", ""].index)


def test_a_thing_that_hovers_is_not_on_top() -> None:
    thing = replace(related("on-top")[0], carried=False)
    instances, picture = seen([thing, standing(CAN, 0.0, 0.0)])
    assert reason_of(prove_image, says("on-top"), 0, instances, picture) == "not-on-top"


@pytest.mark.parametrize(("hidden", "reason"), [(0.0, ""), (0.05, ""), (0.3, "foot-hidden")])
def test_what_lies_on_top_shows_its_foot(hidden: float, reason: str) -> None:
    """hidden: share of its height, from below, that what it lies on hides."""
    things = related("on-top")
    view = frame_things(VIEW, np.concatenate([thing.points for thing in things]), 0.5)
    picture = foresee(things, view, RESOLUTION)
    rows, columns = np.nonzero(picture.instances == 1)
    below = rows > rows.max() - hidden * np.ptp(rows)
    picture.instances[rows[below], columns[below]] = 2
    assert reason_of(prove_image, says("on-top"), 0, measure(things, view, picture), picture) == reason


@pytest.mark.parametrize(("relation", "beside"), [("in-front", 0.53), ("behind", 0.63)])
def test_what_is_in_front_or_behind_is_within_half_a_width(relation: Relation, beside: float) -> None:
    y = SPOTS[relation][1]
    reasons = [
        reason_of(prove_image, says(relation), 0, *seen([standing(BOX, x, y), standing(CAN, 0.0, 0.0)]))
        for x in (0.0, 0.2, beside, -beside)
    ]
    assert reasons == ["", "", "off-axis", "off-axis"]


@pytest.mark.parametrize(
    ("small", "large", "reason"), [(0.6, 1.0, ""), (1.0, 1.0, "size-not-seen"), (0.9, 0.7, "size-not-seen")]
)
def test_small_never_looks_as_large_as_large(small: float, large: float, reason: str) -> None:
    for first, second in (("small", "large"), ("large", "small")):
        lengths = {"small": small, "large": large}
        things = [
            standing(replace(BOX, size=first), -1.4, 0.0, size=lengths[first]),
            standing(replace(CAN, size=second), 0.0, 0.0, size=lengths[second]),
        ]
        drawn = Drawn("attribute", things[0].thing, things[0].thing, things[1].thing, "left", "left", 1, 1)
        assert reason_of(prove_image, drawn, 0, *seen(things)) == ("" if small < large else "size-not-seen")


def test_a_hidden_object_is_refuted() -> None:
    behind = standing(BOX, 0.0, 1.4, size=0.5)
    instances, picture = seen([behind, standing(CAN, 0.0, 0.0, size=1.5)])
    assert instances[0].visible < 0.5
    assert reason_of(prove_image, says("behind"), 0, instances, picture) == "hidden"


@pytest.mark.parametrize("count", range(1, 6))
def test_exactly_as_many_as_are_said(count: int) -> None:
    instances, picture = seen(row(count))
    for said in range(1, 6):
        assert reason_of(prove_image, counts(said), 0, instances, picture) == ("" if said == count else "wrong-count")


def test_one_of_many_that_is_not_seen_is_refuted() -> None:
    things = row(3)
    view = frame_things(VIEW, np.concatenate([thing.points for thing in things]), 0.5)
    picture = foresee(things, view, RESOLUTION)
    picture.instances[picture.instances == 2] = 0
    assert reason_of(prove_image, counts(3), 0, measure(things, view, picture), picture) == "hidden"


def test_what_the_border_cuts_or_is_tiny_is_refuted() -> None:
    things = row(2)
    view = frame_things(VIEW, things[0].points, 0.5)
    assert reason_of(prove_image, counts(2), 0, *seen(things, view)) == "cut-off"
    things = [standing(BOX, 0.0, 0.0, size=0.1), standing(BOX, 4.0, 0.0, size=2.0)]
    assert reason_of(prove_image, counts(2), 0, *seen(things)) == "too-small"


def test_visible_shares_are_of_the_whole_outline() -> None:
    (front, back), _ = seen([standing(BOX, 0.0, 0.0), standing(CAN, 0.3, 0.9)])
    assert front.visible > 0.97 and 0.3 < back.visible < 0.9
    assert front.depth < back.depth and front.box[3] > back.box[3]


def reason_of(prove: Callable[..., None], *shown: Any) -> str:
    """Why something is refuted; empty where it is proved."""
    try:
        prove(*shown)
    except Refuted as refuted:
        return refuted.reason
    return ""
