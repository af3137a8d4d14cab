"""The opt-in image filters on pictures made for both sides of their thresholds."""

import numpy as np

from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Keep, MediaFile, Pixels
from twinset.filters.pixels import Blank, NearIdentical, SceneCut

CAPTIONS = ("A photo of a red circle.", "A photo of a blue circle.")


def plain(red: int, green: int, blue: int, height: int = 90, width: int = 160) -> Pixels:
    return np.full((height, width, 3), (red, green, blue), np.uint8)


def noise(seed: int, low: int, high: int) -> Pixels:
    return np.random.default_rng(seed).integers(low, high, (90, 160, 3)).astype(np.uint8)


def frame(name: str, pixels: Pixels) -> Frame:
    return Frame(id=name, pixels=pixels, pts=0.0, source=MediaFile("made", 0, ""))


def pair(first: Pixels, second: Pixels, name: str = "a", captions: tuple[str, str] = CAPTIONS) -> Pair:
    return Pair(
        key=name,
        group=name,
        split="test",
        change="made",
        image0=frame(f"{name}#0", first),
        image1=frame(f"{name}#1", second),
        captions0=captions[:1],
        captions1=captions[1:],
        provenance={},
    )


def test_a_difference_below_the_threshold_is_near_identical() -> None:
    judge = NearIdentical(kind="near-identical", threshold=2.0).judge
    base = plain(100, 100, 100)
    assert judge([pair(base, base + 1, "b"), pair(base, base + 2, "c")]) == [Drop("near-identical", 1.0), Keep()]


def test_frames_without_contrast_are_blank() -> None:
    judge = Blank(kind="blank", contrast=4.0).judge
    faint, enough = plain(50, 50, 50), plain(50, 50, 50)
    faint[:, ::2] += 6
    enough[:, ::2, 1] += 8  # the channel that varies most counts
    frames = [frame("black", plain(0, 0, 0)), frame("faint", faint), frame("enough", enough)]
    assert judge(frames) == [Drop("blank", 0.0), Drop("blank", 3.0), Keep()]


def test_twins_of_two_scenes_are_cut() -> None:
    judge = SceneCut(kind="scene-cut", similarity=0.3).judge
    beach, forest = plain(230, 200, 120), plain(20, 90, 30)
    mostly, hardly = forest.copy(), forest.copy()
    mostly[:, :56] = beach[:, :56]
    hardly[:, :40] = beach[:, :40]
    pairs = [pair(beach, forest, "f"), pair(beach, mostly, "m"), pair(beach, hardly, "h")]
    assert judge(pairs) == [Drop("scene-cut", 0.0), Keep(), Drop("scene-cut", 0.25)]
