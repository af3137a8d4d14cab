"""An object is told from the ground and from what it borders on by its outline, whatever its own pattern."""

import numpy as np
import pytest

from tests.generators.kubric_scenes.test_proof import BOX, CAN, related, seen
from twinset.generators.kubric_scenes.difference_proofs import prove_contrast
from twinset.generators.kubric_scenes.proof import Instance
from twinset.generators.kubric_scenes.scene.composition import Refuted
from twinset.generators.kubric_scenes.scene.parts import Picture

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


def test_bystanders_may_blend_in() -> None:
    instances, picture = shown("left", BLACK, GROUND)
    assert refuted(instances, picture) and not refuted(instances[:1], picture)
