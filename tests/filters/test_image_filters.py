"""The opt-in image filters on pictures made for both sides of their thresholds."""

import numpy as np
import pytest

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Pixels
from twinset.filters.pixels import (
    Blank,
    NearIdentical,
    SceneCut,
    contrast,
    difference,
    histogram,
    similarity,
    thumbnail,
)


def plain(red: int, green: int, blue: int, height: int = 90, width: int = 160) -> Pixels:
    return np.full((height, width, 3), (red, green, blue), np.uint8)


def noise(seed: int, low: int, high: int) -> Pixels:
    return np.random.default_rng(seed).integers(low, high, (90, 160, 3)).astype(np.uint8)


def frame(name: str, pixels: Pixels) -> Frame:
    return Frame(id=name, pixels=pixels, pts=0.0, source=MediaFile("made", 0, ""))


def pair(first: Pixels, second: Pixels, name: str = "a") -> Pair:
    return Pair(
        key=name,
        group=name,
        split="test",
        change="made",
        image0=frame(f"{name}#0", first),
        image1=frame(f"{name}#1", second),
        captions0=("one",),
        captions1=("two",),
        provenance={},
    )


def test_a_difference_below_the_threshold_is_near_identical() -> None:
    judge = NearIdentical(kind="near-identical", threshold=2.0).judge
    base = plain(100, 100, 100)
    one_level, two_levels = pair(base, base + 1, "one"), pair(base, base + 2, "two")
    assert judge([one_level, two_levels]) == [Drop("near-identical", 1.0), Keep()]
    assert judge([two_levels]) == [Keep()]


def test_the_difference_sees_a_moved_object_but_not_noise() -> None:
    scene = noise(0, 60, 70)
    moved = scene.copy()
    moved[20:60, 20:60] = 220
    noisy = np.clip(scene.astype(int) + np.random.default_rng(1).integers(-8, 9, scene.shape), 0, 255).astype(np.uint8)
    assert difference(thumbnail(scene), thumbnail(moved)) > 10
    assert difference(thumbnail(scene), thumbnail(noisy)) < 0.75 * np.abs(scene.astype(int) - noisy).mean()


def test_a_thumbnail_is_the_mean_of_its_cells_whatever_the_size() -> None:
    pixels = noise(2, 0, 256).repeat(32, axis=0)[:128, :128]
    expected = [pixels[2 * row : 2 * row + 2, 10:12].mean(axis=(0, 1)) for row in range(64)]
    assert np.allclose(thumbnail(pixels)[:, 5], expected, atol=0.51)
    assert (thumbnail(plain(7, 8, 9, height=5, width=300)) == (7, 8, 9)).all()
    assert difference(thumbnail(plain(7, 8, 9, 720, 1280)), thumbnail(plain(10, 8, 9, 33, 41))) == 1.0


def test_frames_without_contrast_are_blank() -> None:
    judge = Blank(kind="blank", contrast=4.0).judge
    faint, enough = plain(50, 50, 50), plain(50, 50, 50)
    faint[:, ::2] += 6
    enough[:, ::2] += 8
    frames = [frame("black", plain(0, 0, 0)), frame("faint", faint), frame("enough", enough)]
    assert judge(frames) == [Drop("blank", 0.0), Drop("blank", 3.0), Keep()]
    assert judge(frames[::-1]) == judge(frames)[::-1]


def test_contrast_is_numpys_standard_deviation_of_the_liveliest_channel() -> None:
    pixels = noise(3, 40, 60)
    pixels[..., 1] = noise(4, 0, 256)[..., 0]
    assert contrast(pixels) == pytest.approx(pixels[..., 1].std())
    half = plain(200, 0, 0)
    half[:45] = (0, 60, 0)  # of nearly one grey, but clearly two colours
    assert contrast(half) == 100.0


def test_twins_of_two_scenes_are_cut() -> None:
    judge = SceneCut(kind="scene-cut", similarity=0.3).judge
    beach, forest = plain(230, 200, 120), plain(20, 90, 30)
    walk = beach.copy()
    walk[:, :60] = (120, 30, 30)
    mostly, hardly = forest.copy(), forest.copy()
    mostly[:, :56] = beach[:, :56]
    hardly[:, :40] = beach[:, :40]
    pairs = [pair(beach, forest, "ab"), pair(beach, walk, "aw"), pair(beach, mostly, "am"), pair(beach, hardly, "ah")]
    assert judge(pairs) == [Drop("scene-cut", 0.0), Keep(), Keep(), Drop("scene-cut", 0.25)]
    assert judge(pairs[2:]) == judge(pairs)[2:]


def test_similarity_compares_shares_not_sizes() -> None:
    small, large = noise(5, 0, 256), noise(5, 0, 256).repeat(2, axis=0).repeat(3, axis=1)
    assert similarity(histogram(small), histogram(large)) == 1.0
    assert histogram(large).sum() == large.shape[0] * large.shape[1]
