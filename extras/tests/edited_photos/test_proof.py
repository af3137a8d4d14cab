"""Edited photos are proved on the stored files: only the place has changed."""

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from extras.tests.edited_photos.made_edits import (
    HEIGHT,
    WIDTH,
    Opened,
    became,
    inside,
    made,
    photo,
    shifted,
)
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels
from twinset.shards.contracts import Context
from twinset_extras.edited_photos.image_editor import Edit


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: one.pixels[:-8], "other-size"),
        (lambda one: np.zeros_like(one.pixels), "blank"),
        (lambda one: one.pixels.copy(), "same-image"),
        (lambda one: np.roll(inside(one), 2, axis=1), "moved"),
        (lambda one: cv2.resize(inside(one)[6:-6, 8:-8], (WIDTH, HEIGHT)), "moved"),
        (lambda one: np.where(np.arange(WIDTH)[:, None] > 300, one.pixels + 30, inside(one)), "changed-outside"),
        (lambda one: np.where(one.mask[..., None], one.pixels + 3, one.pixels), "hardly-changed"),
    ],
)
def test_what_an_editor_must_not_do(opened: Opened, change: Callable[[Edit], Pixels], reason: str) -> None:
    assert became(made(opened, change)) == reason


def test_what_lies_outside_is_taken_from_the_photo_after_the_shift_was_measured(opened: Opened) -> None:
    assert became(made(opened, lambda one: inside(one) + np.uint8(12))) == "changed-outside"
    pasted = made(opened, lambda one: inside(one) + np.uint8(12), paste=True)
    assert isinstance(pasted, Pair) and pasted.scores["difference_outside"] == 0
    assert became(made(opened, shifted, paste=True)) == "moved"


def test_the_proof_is_measured_on_the_files_as_stored(opened: Opened) -> None:
    assert Context("twins").encoding.quality == 95
    generator = opened()
    stored: Pixels = generator._stored(photo())
    assert 0 < np.abs(stored.astype(int) - photo()).mean() < 4
