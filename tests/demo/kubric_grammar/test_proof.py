"""The proof accepts masks that show a caption, and rejects those of any other one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.generators.kubric_scenes.test_proof import reason_of
from twinset.generators.kubric_scenes.proof import Instance
from twinset.generators.kubric_scenes.scene.parts import Picture
from twinset_demo.kubric_grammar.colours import of_colour
from twinset_demo.kubric_grammar.grammar import read
from twinset_demo.kubric_grammar.proof import coloured, prove_colours, prove_placed
from twinset_demo.kubric_grammar.vocabulary import COLOURS

SIDE = 200


def one(x: float, y: float, wide: float = 40, tall: float = 40, depth: float = 10.0, on: int = -1) -> Instance:
    """An object whose mask is a box around (x, y), pixels; it stands where it is seen."""
    box = (round(x - wide / 2), round(y - tall / 2), round(x + wide / 2), round(y + tall / 2))
    seen = round(wide * tall)
    position = ((x - 100) / 40, depth - 10.0, 0.0)
    return Instance(
        "thing", "asset", "", box, (x, y), seen, 1.0, 1.0, 1.0, depth, False, position, (1.0, 0.0, 0.0, 0.0), (on,)
    )


#: Two objects, in the order of the caption "a red mug RELATION a brown table", that show each relation and no other.
SHOWN = {
    "to the left of": (one(60, 100), one(120, 100)),
    "to the right of": (one(120, 100), one(60, 100)),
    "in front of": (one(100, 150, depth=8.0), one(100, 60, depth=12.0)),
    "behind": (one(100, 60, depth=12.0), one(100, 150, depth=8.0)),
    "on top of": (one(100, 60, depth=10.0, on=1), one(100, 120, 80, 80)),
    "under": (one(100, 135, 30, 30), one(100, 120, 120, 80)),
    "far away from": (one(30, 100), one(170, 100)),
}


def refuted(caption: str, *seen: Instance, owners: tuple[int, ...] = (0, 1)) -> str:
    return reason_of(prove_placed, read(caption), owners, seen, SIDE * SIDE)


@pytest.mark.parametrize("relation", SHOWN)
@pytest.mark.parametrize("shown", SHOWN)
def test_each_relation_is_proved_by_its_own_picture_alone(relation: str, shown: str) -> None:
    reason = refuted(f"a red mug {relation} a brown table", *SHOWN[shown])
    # What is far away to the left of something is also to the left of it.
    assert (reason == "") is (relation == shown or (relation, shown) == ("to the left of", "far away from"))


def test_next_to_is_on_either_side_and_near() -> None:
    caption = "a red mug next to a blue bowl"
    assert not refuted(caption, *SHOWN["to the left of"])
    assert not refuted(caption, *SHOWN["to the right of"])
    assert refuted(caption, *SHOWN["far away from"]) == "wrong-relation"


def test_beside_is_not_before() -> None:
    left, right = SHOWN["to the left of"]
    nearer = replace(left, position=(left.position[0], -3.0, 0.0))
    assert refuted("a red mug to the left of a blue bowl", nearer, right) == "wrong-relation"


def test_all_of_a_group_stand_on_its_side() -> None:
    caption = "two red mugs to the left of a blue bowl"
    bowl = one(160, 100)
    assert not refuted(caption, one(40, 100), one(90, 100), bowl, owners=(0, 0, 1))
    assert refuted(caption, one(90, 100), one(180, 100), bowl, owners=(0, 0, 1)) == "wrong-relation"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_counts(count: int) -> None:
    seen = [one(40 + 45 * place, 100) for place in range(count)]
    reason = refuted("three red mugs", *seen, owners=(0,) * count)
    assert reason == "wrong-count"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"visible": 0.5}, "hidden"),
        ({"pixels": 0}, "hidden"),
        ({"cut": True}, "cut-off"),
        ({"pixels": 90}, "too-small"),
    ],
)
def test_what_is_hardly_seen(change: dict[str, Any], reason: str) -> None:
    left, right = SHOWN["to the left of"]
    assert refuted("a red mug to the left of a blue bowl", replace(left, **change), right) == reason


def test_counted_objects_must_be_seen_better() -> None:
    seen = [one(60, 100), replace(one(120, 100), visible=0.65)]
    assert refuted("two red mugs", *seen, owners=(0, 0)) == "hidden"


def test_what_stands_behind_shows_its_foot() -> None:
    near, far = SHOWN["in front of"]
    assert refuted("a red mug in front of a blue bowl", near, replace(far, foot=0.2)) == "hidden"


def test_what_fell_off_is_not_on_top() -> None:
    upper, lower = SHOWN["on top of"]
    caption = "a red mug on top of a brown table"
    assert refuted(caption, replace(upper, rests_on=(-1, 1)), lower) == "not-on-top"


def painted(colour: str) -> Picture:
    """One object in an even colour, before grey."""
    instances = np.zeros((40, 40), np.uint8)
    instances[10:30, 10:30] = 1
    pixels = np.full((40, 40, 3), 150, np.uint8)
    pixels[instances == 1] = COLOURS[colour]
    return Picture(pixels, instances, np.ones((40, 40), np.float32))


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_are_told_apart(colour: str) -> None:
    fits = {name for name in COLOURS if coloured(painted(colour), 1, name) > 0.5}
    alike = {"golden": {"yellow"}, "yellow": {"golden"}, "red": {"pink"}, "orange": {"golden"}}
    assert colour in fits
    assert fits <= {colour} | alike.get(colour, set())


def test_shade_and_light_do_not_change_a_colour() -> None:
    for colour in ("red", "green", "blue", "yellow", "purple", "pink"):
        for light in (0.7, 1.1):
            pixels = np.clip(np.array([COLOURS[colour]]) * light, 0, 255).astype(np.uint8)
            assert of_colour(pixels, colour).all(), (colour, light)


def test_a_colour_that_is_said_is_proved() -> None:
    scene = read("a red mug")
    prove_colours(scene, (0,), painted("red"))
    assert reason_of(prove_colours, scene, (0,), painted("blue")) == "wrong-colour"
    prove_colours(read("a mug"), (0,), painted("blue"))


def test_what_stands_behind_does_not_seem_to_stand_on_what_is_before() -> None:
    near, far = SHOWN["in front of"]
    touching = replace(far, box=(far.box[0], near.box[1] - 40, far.box[2], near.box[1] - 1))
    assert refuted("a red mug in front of a blue bowl", near, touching) == "hidden"
