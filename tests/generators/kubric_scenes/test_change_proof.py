"""Two pictures may differ where the changed things and their shadows are; elsewhere hardly.

An object is told from the ground and from what it borders on by its outline, whatever its own pattern.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.generators.kubric_scenes.test_proof import BOX, CAN, RESOLUTION, VIEW, reason_of, related, seen, standing
from twinset.generators.kubric_scenes.difference_proofs import (
    MAX_MOVED,
    SEEN,
    prove_change,
    prove_contrast,
    prove_spot,
)
from twinset.generators.kubric_scenes.proof import Instance, foresee
from twinset.generators.kubric_scenes.scene.camera import axes, frame_things
from twinset.generators.kubric_scenes.scene.composition import Standing
from twinset.generators.kubric_scenes.scene.parts import Drawn, Picture, Refuted

SUN = replace(VIEW, sun=(-1.0, 0.0, 1.0))  # from the left: shadows fall to the right, as long as things are high
LEFT, RIGHT, CENTRE = standing(BOX, -2.2, 0.0), standing(BOX, 2.2, 0.0), standing(CAN, 0.0, 0.0)
GREEN = replace(LEFT, placement=replace(LEFT.placement, asset="green"))
LOCATION = Drawn("location", BOX, BOX, CAN, "left", "right", 1, 1)
COUNTING = Drawn("counting", BOX, BOX, None, "", "", 2, 3)
ATTRIBUTE = Drawn("attribute", BOX, replace(BOX, name="green box"), CAN, "left", "left", 1, 1)
Things = tuple[Standing, ...]


class Shown:
    """Two scenes in one view, seen from above: black pictures, in which parts of the second are painted."""

    def __init__(self, first: Things, second: Things) -> None:
        self.things = first, second
        self.view = frame_things(SUN, np.array([[-5.0, -2.0, 0.0], [5.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), 0.9)
        self.pictures = foresee(first, self.view, RESOLUTION), foresee(second, self.view, RESOLUTION)
        # Where the ray through each pixel meets the floor.
        across = (np.arange(RESOLUTION) + 0.5 - RESOLUTION / 2) * self.view.sensor_width
        right, up = np.meshgrid(
            across / self.view.focal_length / RESOLUTION, -across / self.view.focal_length / RESOLUTION
        )
        rays = np.stack([right, up, np.ones_like(right)], axis=2) @ axes(self.view).T
        self.floor = np.asarray(self.view.camera) - rays * (self.view.camera[2] / rays[..., 2:])

    def paint(self, x: tuple[float, float], y: tuple[float, float], instance: int = 0, by: int = SEEN + 1) -> None:
        """Lighten what of an instance (0: the floor) is seen before a part of the floor, scene units."""
        inside = [
            (low <= self.floor[..., axis]) & (self.floor[..., axis] <= high) for axis, (low, high) in ((0, x), (1, y))
        ]
        self.pictures[1].pixels[inside[0] & inside[1] & (self.pictures[1].instances == instance)] = by

    def refused(self, drawn: Drawn) -> str:
        return reason_of(prove_change, drawn, self.view, self.things, self.pictures)


EVERYWHERE = (-9.0, 9.0)
CHANGES = {
    "location": (LOCATION, (LEFT, CENTRE), (RIGHT, CENTRE), 2),
    "counting": (COUNTING, (CENTRE, RIGHT), (CENTRE, RIGHT, LEFT), 1),
    "attribute": (ATTRIBUTE, (LEFT, CENTRE), (GREEN, CENTRE), 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_change_may_not_differ(name: str) -> None:
    drawn, first, second, unchanged = CHANGES[name]

    def shown() -> Shown:
        both = Shown(first, second)
        if name == "attribute":
            both.pictures[1].pixels[both.pictures[1].instances == 1] = (0, 200, 0)
        return both

    assert shown().refused(drawn) == ""
    floor = shown()
    floor.paint(EVERYWHERE, (0.8, 9.0))
    assert floor.refused(drawn) == "differs-elsewhere"
    hardly = shown()
    hardly.paint(EVERYWHERE, EVERYWHERE, by=SEEN)
    hardly.paint(EVERYWHERE, (-0.6, -0.5))
    assert hardly.refused(drawn) == ""
    thing = shown()
    thing.paint(EVERYWHERE, EVERYWHERE, instance=unchanged)
    assert thing.refused(drawn) == "differs-elsewhere"


def test_a_shadow_may_differ_on_the_floor_but_not_on_other_things() -> None:
    beside = Shown((LEFT, CENTRE), (RIGHT, CENTRE))
    for x in (-2.2, 2.2):  # 0.8 wide and high
        beside.paint((x, x + 1.3), (-0.4, 0.4), by=200)
    assert beside.refused(LOCATION) == ""
    beside.paint((-9.0, -3.0), EVERYWHERE, by=200)  # towards the sun
    assert beside.refused(LOCATION) == "differs-elsewhere"
    near = Shown((standing(BOX, -1.2, 0.0), CENTRE), (RIGHT, CENTRE))  # its shadow falls on the can
    near.paint(EVERYWHERE, EVERYWHERE, instance=2, by=60)
    assert near.refused(LOCATION) == "differs-elsewhere"
    above = standing(BOX, 0.0, 0.0, height=1.2, carried=True, size=0.3)
    on_top = Shown((above, standing(CAN, 0.0, 0.0, size=1.2)), (RIGHT, standing(CAN, 0.0, 0.0, size=1.2)))
    on_top.paint((0.0, 9.0), (-0.15, 0.15), instance=2, by=60)
    assert on_top.refused(LOCATION) == ""


def test_the_changed_thing_must_differ() -> None:
    assert Shown((LEFT, CENTRE), (GREEN, CENTRE)).refused(ATTRIBUTE) == "change-not-seen"


def test_members_of_a_set_stand_on_one_spot() -> None:
    def beside(x: float) -> Standing:
        return standing(BOX, -2.2 + x * 0.8, 0.0, size=1.0)

    prove_spot(ATTRIBUTE, LEFT, beside(MAX_MOVED - 0.01))
    assert reason_of(prove_spot, ATTRIBUTE, LEFT, beside(MAX_MOVED + 0.01)) == "moved"
    prove_spot(LOCATION, LEFT, RIGHT)


GROUND, BLACK, WHITE, DARK, GREY = 120, 20, 230, 30, 90


def shown(relation: str, object_shade: int, subject_shade: int) -> tuple[list[Instance], Picture]:
    """A box and a can, each in one shade of grey (0-255), on a grey ground."""
    instances, picture = seen(related(relation))  # type: ignore[arg-type]
    shades = np.array([GROUND, object_shade, subject_shade], np.uint8)
    picture.pixels[:] = shades[picture.instances][..., None]
    return instances, picture


def refuted(instances: list[Instance], picture: Picture) -> str:
    try:
        prove_contrast(instances, picture)
    except Refuted as found:
        assert found.reason == "blends-in"
        return str(found)
    return ""


@pytest.mark.parametrize(
    ("relation", "object_shade", "subject_shade", "said"),
    [
        ("on-top", BLACK, WHITE, ""),
        ("on-top", BLACK, DARK, f"line between {BOX.name} and {CAN.name}"),
        ("left", BLACK, DARK, ""),  # apart from each other, each on the ground
        ("left", BLACK, GROUND + 5, f"outline of {CAN.name} differs in colour from the ground"),
        ("on-top", GROUND, BLACK, f"outline of {BOX.name} differs in colour from the ground"),
    ],
)
def test_what_borders_on_its_like_blends_in(relation: str, object_shade: int, subject_shade: int, said: str) -> None:
    assert said in refuted(*shown(relation, object_shade, subject_shade))
    assert bool(said) == bool(refuted(*shown(relation, object_shade, subject_shade)))


def test_half_an_outline_is_enough() -> None:
    instances, picture = shown("left", BLACK, WHITE)
    left, _, right, _ = instances[1].box
    inside = picture.instances == 2
    columns = np.arange(picture.instances.shape[1])
    for share, blends in ((0.4, False), (0.8, True)):
        picture.pixels[inside] = WHITE
        picture.pixels[inside & (columns < left + share * (right - left))] = GROUND
        assert bool(refuted(instances, picture)) == blends, share


def test_a_pattern_that_has_the_colour_of_the_ground_does_not_blend_in() -> None:
    instances, picture = shown("left", BLACK, WHITE)
    rows = np.arange(picture.instances.shape[0])[:, None]
    # The mean of the stripes is the ground.
    striped = np.where(rows // 12 % 2 == 0, GROUND - 60, GROUND + 60) * np.ones_like(picture.instances, int)
    picture.pixels[picture.instances == 2] = striped[picture.instances == 2][:, None]
    assert not refuted(instances, picture)


def test_colours_of_one_lightness_are_told_apart() -> None:
    instances, picture = shown("left", BLACK, WHITE)
    picture.pixels[picture.instances == 0] = (200, 60, 60)
    picture.pixels[picture.instances == 2] = (30, 127, 30)  # both L* = 46
    assert not refuted(instances, picture)
