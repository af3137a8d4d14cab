"""Pictures of the small world are read as they were painted, through noise and blur, and nothing else passes."""

from collections import Counter
from dataclasses import replace

import cv2
import numpy as np
import pytest

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.small_diffusion.painter import SIZE, paint
from twinset_demo.small_diffusion.scenes import Scene, normalised, sample_scene
from twinset_demo.small_world.backdrop import object_mask
from twinset_demo.small_world.checker import judge, read_picture, stated


def worn(picture: Pixels, rng: np.random.Generator, noise: float, blur: float) -> Pixels:
    """As a diffusion model may leave it: blurred, with noise of so many grey levels."""
    soft = cv2.GaussianBlur(picture.astype(np.float32), (5, 5), blur)
    return np.clip(soft + rng.normal(0, noise, soft.shape) + 0.5, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("noise", (0, 8, 12))
def test_painted_pictures_are_read_as_they_were_painted(noise: int) -> None:
    wrong: Counter[str] = Counter()
    for seed in range(200):
        rng = np.random.default_rng([noise, seed])
        scene = sample_scene(rng)
        picture = paint(scene, rng)
        seen = read_picture(worn(picture, rng, noise, 0.7) if noise else picture)
        wrong.update(name for name, right in judge(seen, scene).items() if not right)
    assert all(times <= 1 for times in wrong.values()), wrong  # 99.5 % of 200


@pytest.mark.parametrize(
    ("attribute", "field", "words", "of"),
    [
        ("style", "style", ("photo", "painting"), Scene()),
        ("colour", "colour", ("red", "blue", "yellow", "green", "purple", "black"), Scene(count="two")),
        (
            "shape",
            "object",
            ("ball", "box", "star", "heart", "house", "tree", "fish", "car"),
            Scene(place="in the snow"),
        ),
        ("shape", "object", ("ball", "box", "star", "heart", "house", "tree", "fish", "car"), Scene(count="three")),
        ("count", "count", ("two", "three", "four"), Scene(object="car", colour="black")),
        ("size", "size", ("", "small", "large"), Scene(object="star", colour="yellow")),
        (
            "position",
            "position",
            ("", "on the left", "on the right", "at the top", "at the bottom"),
            Scene(size="small"),
        ),
        ("place", "place", ("", "on the grass", "in the desert", "in the snow"), Scene(style="painting")),
        ("time", "time", ("", "at sunset", "at night"), Scene(place="in the desert", colour="purple")),
    ],
)
def test_a_picture_of_another_scene_is_wrong_in_just_what_differs(
    attribute: str, field: str, words: tuple[str, ...], of: Scene
) -> None:
    rng = np.random.default_rng(0)
    scenes = [normalised(replace(of, **{field: word})) for word in words]
    for shown in scenes:
        seen = read_picture(paint(shown, rng))
        for asked in scenes:
            wrong = [name for name, right in judge(seen, asked).items() if not right]
            assert wrong == ([] if asked == shown else [attribute]), (shown, asked, seen)


def test_blank_pictures_and_noise_show_nothing() -> None:
    rng = np.random.default_rng(0)
    blank = [np.full((SIZE, SIZE, 3), level, np.uint8) for level in (0, 128, 205, 255)]
    noise = [rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8) for _ in range(8)]
    # Noise of larger grain has patches of all forms and sizes.
    noise += [cv2.resize(picture[:20, :20], (SIZE, SIZE), interpolation=cv2.INTER_NEAREST) for picture in noise]
    for picture in (*blank, *noise):
        seen = read_picture(picture)
        assert seen.shape is None and seen.place is None, seen


def test_half_of_another_colour_is_no_colour() -> None:
    picture = paint(Scene(object="box", size="large"), np.random.default_rng(1))
    half = picture[:, SIZE // 2 :]
    half[(half == (214, 40, 40)).all(2)] = (40, 70, 220)
    seen = read_picture(picture)
    assert (seen.count, seen.shape, seen.colour) == ("a", "box", None)


def test_a_second_object_of_another_kind_counts_and_leaves_no_common_shape_or_colour() -> None:
    rng = np.random.default_rng(2)
    left = paint(Scene(object="star", position="on the left"), rng)
    right = paint(Scene(object="car", colour="green", position="on the right"), rng)
    left[:, SIZE // 2 :] = right[:, SIZE // 2 :]
    seen = read_picture(left)
    assert (seen.count, seen.shape, seen.colour, seen.position) == ("two", None, None, None)


def test_the_mask_holds_all_that_an_object_changes_and_little_else() -> None:
    for object_ in ("ball", "star", "car"):
        with_object = paint(Scene(object=object_, place="on the grass"), np.random.default_rng(3))
        mask = object_mask(with_object)
        # The same random numbers, so the same horizon, with the object elsewhere.
        elsewhere = paint(Scene(object=object_, place="on the grass", position="at the top"), np.random.default_rng(3))
        changed = (with_object != elsewhere).any(2)
        assert not (changed & ~mask & ~object_mask(elsewhere)).any()
        assert mask.sum() < 900


def test_what_is_in_words_is_stated() -> None:
    assert stated(Scene()) == {"style", "count", "shape", "colour"}
    assert stated(Scene(colour="", size="small", position="on the left", place="in the snow")) == {
        "style", "count", "shape", "size", "position", "place",
    }  # fmt: skip


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="64"):
        read_picture(np.zeros((32, 32, 3), np.uint8))
