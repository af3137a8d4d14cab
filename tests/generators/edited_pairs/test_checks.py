"""Only the broken is rejected, and how alike two pictures are is measured within and without the edit."""

import numpy as np
import pytest

from twinset.generators.edited_pairs.generator import NO_SIMILARITY, broken, similarity

NOISE = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)


def test_only_the_broken_is_rejected() -> None:
    first, second = NOISE
    assert broken(first, second, True) == ""
    assert broken(first, second, False) == "not-finite"
    assert broken(first, first.copy(), True) == "identical"
    even = np.full((8, 8, 3), (200, 10, 30), np.uint8)
    assert broken(first, even, True) == broken(np.zeros_like(first), second, True) == "blank"
    nearly = even.copy()
    nearly[3, 3, 0] += 1
    assert broken(nearly, even + 1, True) == "blank" and broken(nearly, first, True) == ""
    almost = first.copy()
    almost[0, 0, 0] ^= 1
    assert broken(first, almost, True) == ""


def test_similarity_is_measured_within_and_without() -> None:
    black, changed = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8, 3), np.uint8)
    region = np.zeros((8, 8), np.bool_)
    region[:2] = True
    changed[0] = 255
    changed[7, 0] = (51, 0, 0)
    found = similarity(black, changed, region)
    assert found == {
        "region": 0.25,
        "similarity_inside": 0.5,
        "similarity_outside": pytest.approx(1 - 51 / (48 * 3 * 255)),
    }
    assert similarity(changed, black, region) == found


def test_without_an_outside_it_has_no_score() -> None:
    first, second = NOISE
    found = similarity(first, second, np.ones((8, 8), np.bool_))
    assert (
        found["region"] == 1 and found["similarity_outside"] == NO_SIMILARITY and 0.5 < found["similarity_inside"] < 0.8
    )
