"""Pairs that have moved."""

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from tests.filters.test_image_filters import pair
from twinset.contracts.kinds.samples import Drop, Keep, Pixels
from twinset_extras.drift import Drift

SPOTS = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
SCENE: Pixels = np.asarray(cv2.resize(SPOTS, (400, 320), interpolation=cv2.INTER_CUBIC))


def changed(pixels: Pixels) -> Pixels:
    other = pixels.copy()
    other[60:140, 80:200] = 30
    return other


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed, ""),
        (lambda one: np.roll(changed(one), 1, axis=1), ""),  # one pixel is allowed, and here hardly seen
        (lambda one: np.roll(changed(one), 3, axis=1), "moved"),
        (lambda one: cv2.resize(changed(one)[8:-8, 10:-10], (400, 320)), "moved"),
        (lambda one: one[:-2], "other-size"),
        (lambda one: np.random.default_rng(1).integers(0, 256, one.shape, np.uint8), "changed-elsewhere"),
    ],
)
def test_drift(change: Callable[[Pixels], Pixels], reason: str) -> None:
    (verdict,) = Drift(kind="drift", difference=12).judge([pair(SCENE, change(SCENE))])
    assert (verdict.reason if isinstance(verdict, Drop) else "") == reason


def test_flat_pictures_stand_still() -> None:
    flat = np.full_like(SCENE, 90)
    pairs = [pair(SCENE, changed(SCENE), "a"), pair(SCENE, np.roll(SCENE, 4, axis=0), "b"), pair(flat, flat + 1, "c")]
    assert [type(one) for one in Drift(kind="drift").judge(pairs)] == [Keep, Drop, Keep]
