"""The proof accepts what is shown and rejects everything else: captions swapped, things hidden, counts wrong."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import trimesh

from twinset.generators.kubric_scenes import proof
from twinset.generators.kubric_scenes.captions import RELATIONS, Drawn, NamedAsset, Relation
from twinset.generators.kubric_scenes.composition import Standing, Things
from twinset.generators.kubric_scenes.geometry import Model, Picture, Refuted, frame_things, project

RESOLUTION = 200
BOX, CAN = NamedAsset("red box", "box"), NamedAsset("blue can", "can")
GREY = (0.4, 0.4, 0.4)


def standing(
    asset: NamedAsset, x: float, y: float, *, height: float = 0.0, carried: bool = False, size: float = 0.8
) -> Standing:
    mesh = trimesh.creation.box(extents=(size, size, size))
    points = np.asarray(mesh.vertices, dtype=np.float64)
    shape = Model("box", 1.0, points, np.asarray(mesh.faces, dtype=np.int32))
    return Standing(asset, shape, shape.on_floor(x, y, 0.0, height), carried)


def beside_can(x: float, y: float) -> list[Standing]:
    return [standing(BOX, x, y), standing(CAN, 0.0, 0.0)]


RELATED: dict[str, list[Standing]] = {
    "left": beside_can(-1.4, 0.0),
    "right": beside_can(1.4, 0.0),
    "in-front": beside_can(0.1, -2.6),
    "behind": beside_can(0.1, 2.6),
    "on-top": [standing(BOX, 0.0, 0.0, height=0.8, carried=True), standing(CAN, 0.0, 0.0)],
}


def seen(things: list[Standing]) -> tuple[list[proof.Instance], Picture]:
    view = frame_things(np.concatenate([placed.points for placed in things]), 0.5, GREY)
    picture = proof.foresee(things, view, RESOLUTION)
    return proof.measure(things, view, picture), picture


def says(relation: Relation) -> Drawn:
    return Drawn("location", BOX, BOX, CAN, relation, relation, 1, 1)


def reason_of(prove: Callable[..., None], *shown: Any) -> str:
    """Why something is refuted; empty where it is proved."""
    try:
        prove(*shown)
    except Refuted as refuted:
        return refuted.reason
    return ""


@pytest.mark.parametrize("shown", RELATIONS)
def test_a_relation_is_proved_and_every_other_refuted(shown: Relation) -> None:
    instances, picture = seen(RELATED[shown])
    proof.prove_image(says(shown), 0, instances, picture)
    for wrong in set(RELATIONS) - {shown}:
        assert reason_of(proof.prove_image, says(wrong), 1, instances, picture) == "wrong-relation"


TWO = Drawn("counting", BOX, BOX, None, "", "", 2, 2)
FOUR = [standing(BOX, 1.3 * place, 0.0) for place in range(4)]
SMALL, LARGE = replace(BOX, size="small"), replace(CAN, size="large")
SIZES = Drawn("attribute", SMALL, SMALL, LARGE, "left", "left", 1, 1)


@pytest.mark.parametrize(
    ("drawn", "things", "reason"),
    [
        *((says("behind"), beside_can(x, 2.6), "") for x in (0.0, 0.2)),
        *((says("behind"), beside_can(x, 2.6), "wrong-relation") for x in (0.63, -0.63)),
        # Nearer to what is before it, it seems to stand on it.
        *(
            (says("behind"), beside_can(0.1, away), why)
            for away, why in ((0.9, "hidden"), (1.5, "foot-hidden"), (3, ""))
        ),
        *((says(relation), beside_can(1.2, -1.6), "wrong-relation") for relation in RELATIONS[:4]),
        (SIZES, [standing(SMALL, -1.4, 0.0, size=0.6), standing(LARGE, 0.0, 0.0, size=1.0)], ""),
        (SIZES, [standing(SMALL, -1.4, 0.0, size=1.0), standing(LARGE, 0.0, 0.0, size=1.0)], "size-not-seen"),
        (TWO, [standing(BOX, 0.0, 0.0, size=0.1), standing(BOX, 4.0, 0.0, size=2.0)], "too-small"),
        *((replace(TWO, count0=n, count1=n), FOUR, "" if n == 4 else "wrong-count") for n in range(1, 6)),
    ],
)
def test_what_an_image_must_show(drawn: Drawn, things: list[Standing], reason: str) -> None:
    assert reason_of(proof.prove_image, drawn, 0, *seen(things)) == reason


LEFT, RIGHT, CENTRE = standing(BOX, -2.2, 0.0), standing(BOX, 2.2, 0.0), standing(CAN, 0.0, 0.0)
GREEN = replace(LEFT, placement=replace(LEFT.placement, asset="green"))
LOCATION = Drawn("location", BOX, BOX, CAN, "left", "right", 1, 1)
COUNTING = Drawn("counting", BOX, BOX, None, "", "", 2, 3)
ATTRIBUTE = Drawn("attribute", BOX, replace(BOX, name="green box"), CAN, "left", "left", 1, 1)
EVERYWHERE = (-6.0, 6.0)


def change_of(drawn: Drawn, first: Things, second: Things, *areas: Any) -> str:
    """Why two black pictures, seen from above, are refused after areas of the second were painted.

    areas: parts of the floor (x and y from where to where, scene units), and what is lightened of what is seen before
    them: an instance (0: the floor) by so many steps.
    """
    view = frame_things(np.array([[-5.0, -2.0, 0.0], [5.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), 0.9, GREY)
    pictures = [proof.foresee(things, view, RESOLUTION) for things in (first, second)]
    for x, y, instance, by in areas:
        corners = project(np.array([[*corner, 0.0] for corner in product(x, y)]), view, RESOLUTION)[0]
        corners = np.clip(corners.round().astype(int), 0, RESOLUTION)
        (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
        part = pictures[1].instances[top:bottom, left:right] == instance
        pictures[1].pixels[top:bottom, left:right][part] = by
    return reason_of(proof.prove_change, drawn, view, (first, second), pictures)


@pytest.mark.parametrize(
    ("drawn", "first", "second", "unchanged"),
    [
        (LOCATION, (LEFT, CENTRE), (RIGHT, CENTRE), 2),
        (COUNTING, (CENTRE, RIGHT), (CENTRE, RIGHT, LEFT), 1),
        (ATTRIBUTE, (LEFT, CENTRE), (GREEN, CENTRE), 2),
    ],
)
def test_what_does_not_change_may_not_differ(drawn: Drawn, first: Things, second: Things, unchanged: int) -> None:
    def shown(*areas: Any) -> str:
        changed = [(EVERYWHERE, EVERYWHERE, 1, 200)] if drawn is ATTRIBUTE else []
        return change_of(drawn, first, second, *changed, *areas)

    assert shown() == ""
    assert change_of(ATTRIBUTE, (LEFT, CENTRE), (GREEN, CENTRE)) == "change-not-seen"
    assert shown((EVERYWHERE, (0.8, 6.0), 0, proof.SEEN + 1)) == "differs-elsewhere"
    assert shown((EVERYWHERE, EVERYWHERE, 0, proof.SEEN), (EVERYWHERE, (-0.6, -0.5), 0, proof.SEEN + 1)) == ""
    assert shown((EVERYWHERE, EVERYWHERE, unchanged, proof.SEEN + 1)) == "differs-elsewhere"


def test_a_shadow_may_differ_on_the_floor_but_not_on_other_things(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "SUN", (-1.0, 0.0, 1.0))  # from the left: shadows fall to the right, as long as high
    shadows = [((x, x + 1.3), (-0.4, 0.4), 0, 200) for x in (-2.2, 2.2)]  # 0.8 wide and high
    towards_the_sun = ((-6.0, -3.0), EVERYWHERE, 0, 200)
    scenes = (LEFT, CENTRE), (RIGHT, CENTRE)
    assert change_of(LOCATION, *scenes, *shadows) == ""
    assert change_of(LOCATION, *scenes, *shadows, towards_the_sun) == "differs-elsewhere"
    near = standing(BOX, -1.2, 0.0), CENTRE  # its shadow falls on the can
    assert change_of(LOCATION, near, (RIGHT, CENTRE), (EVERYWHERE, EVERYWHERE, 2, 60)) == "differs-elsewhere"


def test_members_of_a_set_stand_on_one_spot() -> None:
    for apart, reason in ((proof.MAX_MOVED - 0.01, ""), (proof.MAX_MOVED + 0.01, "moved")):
        beside = standing(BOX, -2.2 + apart * 0.8, 0.0, size=1.0)
        assert reason_of(proof.prove_spot, ATTRIBUTE, LEFT, beside) == reason


GROUND, BLACK, WHITE, DARK = 120, 20, 230, 30


def test_what_borders_on_its_like_blends_in() -> None:
    """A box and a can, each in one shade of grey (0-255), on a grey ground."""
    for relation, box, can, reason in (
        ("on-top", BLACK, WHITE, ""),
        ("on-top", BLACK, DARK, "blends-in"),
        ("left", BLACK, DARK, ""),  # apart from each other, each on the ground
        ("left", BLACK, GROUND + 5, "blends-in"),
        ("on-top", GROUND, BLACK, "blends-in"),
    ):
        instances, picture = seen(RELATED[relation])
        shades = np.array([GROUND, box, can], np.uint8)
        picture.pixels[:] = shades[picture.instances][..., None]
        assert reason_of(proof.prove_contrast, instances, picture) == reason
