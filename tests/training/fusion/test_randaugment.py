"""FIBER's RandAugment: a function of its numbers, of which each operation is reached."""

from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from twinset.training.examples.transforms import NUMBERS
from twinset.training.fusion import randaugment
from twinset.training.fusion.randaugment import CHANGES, RANDAUGMENT, randaugmented


def picture() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(40, 200, (60, 80, 3), np.uint8))


def numbers(mirror: float, *operations: float) -> Any:
    """The first try of a crop is all of the picture."""
    found = np.full(RANDAUGMENT, 0.5)
    found[:4] = 1.0, np.log(80 / 60 / 0.75) / np.log(16 / 9), 0.0, 0.0
    found[NUMBERS:] = mirror, *operations
    return found


def test_without_operations_it_is_the_crop_mirrored_and_resized() -> None:
    off = (0.0, 0.9, 0.0) * 2
    assert randaugmented(picture(), numbers(0.9, *off), None).tobytes() == picture().tobytes()
    assert randaugmented(picture(), numbers(0.1, *off), None).tobytes() == ImageOps.mirror(picture()).tobytes()
    assert randaugmented(picture(), numbers(0.9, *off), (32, 24)).size == (32, 24)


@pytest.mark.parametrize("name", CHANGES)
def test_each_operation_is_reached_and_keeps_the_size(name: str) -> None:
    which = ([*CHANGES].index(name) + 0.5) / len(CHANGES)
    found = [randaugmented(picture(), numbers(0.9, which, 0.1, sign, 0.0, 0.9, 0.0), None) for sign in (0.1, 0.9)]
    assert all(one.size == (80, 60) and one.mode == "RGB" for one in found)
    assert (found[0].tobytes() != picture().tobytes()) == (name != "Identity")
    signed = name.startswith(("Shear", "Translate", "Rotate"))
    assert (found[0].tobytes() != found[1].tobytes()) == signed
    if signed:
        assert (128, 128, 128) in {colour for _, colour in found[0].getcolors(10_000)}  # type: ignore[misc]


def test_levels_are_those_of_fiber() -> None:
    """Level 7 of 10: enhanced by 1.36, sheared by 0.21, shifted by 7 pixels, rotated by 21 degrees."""
    found = (randaugment.ENHANCED, randaugment.SHEARED, randaugment.SHIFTED, randaugment.ROTATED)
    assert found == pytest.approx((1.36, 0.21, 7, 21))
