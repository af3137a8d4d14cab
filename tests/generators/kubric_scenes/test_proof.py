"""The proof accepts what is shown and rejects everything else: captions swapped, things hidden, counts wrong."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
import trimesh

from twinset.generators.kubric_scenes.captions import Drawn, NamedAsset, Relation
from twinset.generators.kubric_scenes.composition import Standing, Things
from twinset.generators.kubric_scenes.geometry import (
    Model,
    Picture,
    Refuted,
    View,
    frame_things,
    project,
)
from twinset.generators.kubric_scenes.proof import (
    MAX_MOVED,
    SEEN,
    Instance,
    foresee,
    measure,
    prove_change,
    prove_contrast,
    prove_image,
    prove_spot,
)

RESOLUTION = 200
RELATIONS: tuple[Relation, ...] = get_args(Relation)
SPOTS = {"left": (-1.4, 0), "right": (1.4, 0), "in-front": (0.1, -2.6), "behind": (0.1, 2.6), "on-top": (0, 0)}
BOX, CAN = NamedAsset("red box", "box"), NamedAsset("blue can", "can")
VIEW = View((0, -1, 1), (0, 0, 0), (0, -1, 1), 2.5, (0.4, 0.4, 0.4))


def standing(
    thing: NamedAsset, x: float, y: float, *, height: float = 0.0, carried: bool = False, size: float = 0.8
) -> Standing:
    mesh = trimesh.creation.box(extents=(size, size, size))
    points = np.asarray(mesh.vertices, dtype=np.float64)
    shape = Model("box", 1.0, (1.0, 0.0, 0.0, 0.0), points, np.asarray(mesh.faces, dtype=np.int32))
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


def test_what_seems_to_stand_on_what_is_before_it_is_refuted() -> None:
    reasons = []
    for away in np.linspace(0.9, 3.0, 15):
        instances, picture = seen([standing(BOX, 0.1, float(away)), standing(CAN, 0.0, 0.0)])
        reasons.append(reason_of(prove_image, says("behind"), 0, instances, picture))
    assert reasons[0] in ("hidden", "foot-hidden") and reasons[-1] == "" and "foot-hidden" in reasons
    assert reasons == sorted(reasons, key=["hidden", "foot-hidden", ""].index)


def test_what_lies_on_top_shows_its_foot() -> None:
    things = related("on-top")
    _, picture = seen(things)
    rows, columns = np.nonzero(picture.instances == 1)
    below = rows > rows.max() - 0.3 * np.ptp(rows)
    picture.instances[rows[below], columns[below]] = 2
    view = frame_things(VIEW, np.concatenate([thing.points for thing in things]), 0.5)
    assert reason_of(prove_image, says("on-top"), 0, measure(things, view, picture), picture) == "foot-hidden"


def test_things_that_stand_diagonally_are_in_no_relation() -> None:
    instances, picture = seen([standing(BOX, 1.2, -1.6), standing(CAN, 0.0, 0.0)])
    assert all(reason_of(prove_image, says(relation), 0, instances, picture) for relation in RELATIONS)


def test_what_is_behind_is_within_half_a_width() -> None:
    for x, reason in ((0.0, ""), (0.2, ""), (0.63, "off-axis"), (-0.63, "off-axis")):
        things = [standing(BOX, x, SPOTS["behind"][1]), standing(CAN, 0.0, 0.0)]
        assert reason_of(prove_image, says("behind"), 0, *seen(things)) == reason


def test_small_never_looks_as_large_as_large() -> None:
    small, large = replace(BOX, size="small"), replace(CAN, size="large")
    for length, reason in ((0.6, ""), (1.0, "size-not-seen"), (1.2, "size-not-seen")):
        things = [standing(small, -1.4, 0.0, size=length), standing(large, 0.0, 0.0, size=1.0)]
        drawn = Drawn("attribute", small, small, large, "left", "left", 1, 1)
        assert reason_of(prove_image, drawn, 0, *seen(things)) == reason


def test_exactly_as_many_as_are_said() -> None:
    for count, said in product(range(1, 6), repeat=2):
        assert reason_of(prove_image, counts(said), 0, *seen(row(count))) == ("" if said == count else "wrong-count")


def test_what_the_border_cuts_or_is_tiny_is_refuted() -> None:
    things = row(2)
    view = frame_things(VIEW, things[0].points, 0.5)
    assert reason_of(prove_image, counts(2), 0, *seen(things, view)) == "cut-off"
    things = [standing(BOX, 0.0, 0.0, size=0.1), standing(BOX, 4.0, 0.0, size=2.0)]
    assert reason_of(prove_image, counts(2), 0, *seen(things)) == "too-small"


def reason_of(prove: Callable[..., None], *shown: Any) -> str:
    """Why something is refuted; empty where it is proved."""
    try:
        prove(*shown)
    except Refuted as refuted:
        return refuted.reason
    return ""


SUN = replace(VIEW, sun=(-1.0, 0.0, 1.0))  # from the left: shadows fall to the right, as long as things are high
LEFT, RIGHT, CENTRE = standing(BOX, -2.2, 0.0), standing(BOX, 2.2, 0.0), standing(CAN, 0.0, 0.0)
GREEN = replace(LEFT, placement=replace(LEFT.placement, asset="green"))
LOCATION = Drawn("location", BOX, BOX, CAN, "left", "right", 1, 1)
COUNTING = Drawn("counting", BOX, BOX, None, "", "", 2, 3)
ATTRIBUTE = Drawn("attribute", BOX, replace(BOX, name="green box"), CAN, "left", "left", 1, 1)


class Shown:
    """Two scenes in one view, seen from above: black pictures, in which parts of the second are painted."""

    def __init__(self, first: Things, second: Things) -> None:
        self.things = first, second
        self.view = frame_things(SUN, np.array([[-5.0, -2.0, 0.0], [5.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), 0.9)
        self.pictures = foresee(first, self.view, RESOLUTION), foresee(second, self.view, RESOLUTION)

    def paint(self, x: tuple[float, float], y: tuple[float, float], instance: int = 0, by: int = SEEN + 1) -> None:
        """Lighten what of an instance (0: the floor) is seen before a part of the floor, scene units."""
        corners = np.array([[*corner, 0.0] for corner in product(x, y)])
        pixels = np.clip(project(corners, self.view, RESOLUTION)[0].round().astype(int), 0, RESOLUTION)
        (left, top), (right, bottom) = pixels.min(axis=0), pixels.max(axis=0)
        part, picture = np.s_[top:bottom, left:right], self.pictures[1]
        picture.pixels[part][picture.instances[part] == instance] = by

    def refused(self, drawn: Drawn) -> str:
        return reason_of(prove_change, drawn, self.view, self.things, self.pictures)


EVERYWHERE = (-6.0, 6.0)
CHANGES = {
    "location": (LOCATION, (LEFT, CENTRE), (RIGHT, CENTRE), 2),
    "counting": (COUNTING, (CENTRE, RIGHT), (CENTRE, RIGHT, LEFT), 1),
    "attribute": (ATTRIBUTE, (LEFT, CENTRE), (GREEN, CENTRE), 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_change_may_not_differ(name: str) -> None:
    drawn, first, second, unchanged = CHANGES[name]

    def shown(*areas: Any) -> str:
        both = Shown(first, second)
        if name == "attribute":
            both.pictures[1].pixels[both.pictures[1].instances == 1] = (0, 200, 0)
        for area in areas:
            both.paint(*area)
        return both.refused(drawn)

    assert shown() == ""
    assert shown((EVERYWHERE, (0.8, 6.0))) == "differs-elsewhere"
    assert shown((EVERYWHERE, EVERYWHERE, 0, SEEN), (EVERYWHERE, (-0.6, -0.5))) == ""
    assert shown((EVERYWHERE, EVERYWHERE, unchanged)) == "differs-elsewhere"


def test_a_shadow_may_differ_on_the_floor_but_not_on_other_things() -> None:
    beside = Shown((LEFT, CENTRE), (RIGHT, CENTRE))
    for x in (-2.2, 2.2):  # 0.8 wide and high
        beside.paint((x, x + 1.3), (-0.4, 0.4), by=200)
    assert beside.refused(LOCATION) == ""
    beside.paint((-6.0, -3.0), EVERYWHERE, by=200)  # towards the sun
    assert beside.refused(LOCATION) == "differs-elsewhere"
    near = Shown((standing(BOX, -1.2, 0.0), CENTRE), (RIGHT, CENTRE))  # its shadow falls on the can
    near.paint(EVERYWHERE, EVERYWHERE, instance=2, by=60)
    assert near.refused(LOCATION) == "differs-elsewhere"


def test_the_changed_thing_must_differ() -> None:
    assert Shown((LEFT, CENTRE), (GREEN, CENTRE)).refused(ATTRIBUTE) == "change-not-seen"


def test_members_of_a_set_stand_on_one_spot() -> None:
    def beside(x: float) -> Standing:
        return standing(BOX, -2.2 + x * 0.8, 0.0, size=1.0)

    prove_spot(ATTRIBUTE, LEFT, beside(MAX_MOVED - 0.01))
    assert reason_of(prove_spot, ATTRIBUTE, LEFT, beside(MAX_MOVED + 0.01)) == "moved"
    prove_spot(LOCATION, LEFT, RIGHT)


GROUND, BLACK, WHITE, DARK = 120, 20, 230, 30


@pytest.mark.parametrize(
    ("relation", "object_shade", "subject_shade", "reason"),
    [
        ("on-top", BLACK, WHITE, ""),
        ("on-top", BLACK, DARK, "blends-in"),
        ("left", BLACK, DARK, ""),  # apart from each other, each on the ground
        ("left", BLACK, GROUND + 5, "blends-in"),
        ("on-top", GROUND, BLACK, "blends-in"),
    ],
)
def test_what_borders_on_its_like_blends_in(
    relation: Relation, object_shade: int, subject_shade: int, reason: str
) -> None:
    """A box and a can, each in one shade of grey (0-255), on a grey ground."""
    instances, picture = seen(related(relation))
    shades = np.array([GROUND, object_shade, subject_shade], np.uint8)
    picture.pixels[:] = shades[picture.instances][..., None]
    assert reason_of(prove_contrast, instances, picture) == reason
