"""The small world's grammar: what is said can be read again, and some captions are never trained on."""

import numpy as np
import pytest

from twinset_demo.small_diffusion.scenes import (
    HELD_OUT,
    Scene,
    every_caption,
    is_held_out,
    normalised,
    read_caption,
    sample_scene,
)


def drawn(number: int) -> list[Scene]:
    rng = np.random.default_rng(7)
    return [sample_scene(rng) for _ in range(number)]


def test_a_caption_says_all_of_its_scene() -> None:
    for scene in drawn(500):
        assert read_caption(scene.caption()) == scene
        assert read_caption(scene.caption().capitalize() + ".") == scene


def test_a_caption_in_words() -> None:
    scene = Scene(
        size="small", colour="red", object="star", position="on the left", place="in the desert", time="at night"
    )
    assert scene.caption() == "a photo of a small red star on the left in the desert at night"
    assert Scene(style="painting", count="two", colour="", object="box").caption() == "a painting of two boxes"


@pytest.mark.parametrize(
    "caption",
    [
        "",
        "a dog",
        "a photo of a dog",
        "a photo of two red ball",
        "a photo of a red ball at night in the snow",
        "a photo of a red ball on the moon",
    ],
)
def test_what_the_world_does_not_hold_is_refused(caption: str) -> None:
    with pytest.raises(ValueError, match="small world"):
        read_caption(caption)


def test_scenes_are_possible_ones() -> None:
    for scene in drawn(500):
        assert normalised(scene) == scene
        assert not (scene.number > 1 and (scene.size or scene.position))
        assert not (scene.time and not scene.place)


def test_one_caption_in_twenty_is_held_out() -> None:
    captions = {scene.caption() for scene in drawn(4000)}
    share = sum(map(is_held_out, captions)) / len(captions)
    assert 0.5 / HELD_OUT < share < 1.5 / HELD_OUT
    assert captions < every_caption()
