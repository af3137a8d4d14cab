"""Captions of two things: what is said can be read again, and what is held out is so with all its swaps."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from twinset_demo.small_diffusion.painter import SIZE, paint_arrangement
from twinset_demo.small_diffusion.relations import (
    RELATIONS,
    Arrangement,
    Thing,
    colours_swapped,
    every_arrangement,
    is_held_out,
    read_arrangement,
    sample_arrangement,
    things_swapped,
)
from twinset_demo.small_diffusion.scenes import COLOURS, HELD_OUT, PLACES

SCENE = Arrangement(Thing("red", "ball"), "to the left of", Thing("blue", "box"), "in the snow")


def drawn(number: int) -> list[Arrangement]:
    rng = np.random.default_rng(7)
    return [sample_arrangement(rng) for _ in range(number)]


def test_a_caption_says_all_of_its_scene() -> None:
    assert SCENE.caption() == "a red ball to the left of a blue box in the snow"
    for scene in drawn(300):
        assert read_arrangement(scene.caption()) == scene
        assert read_arrangement(scene.caption().capitalize() + ".") == scene


@pytest.mark.parametrize(
    "caption",
    [
        "",
        "a red ball",
        "a red ball near a blue box",
        "a red dog above a blue box",
        "red ball above a blue box",
        "a red ball above a blue box at night",
        "a photo of a red ball above a blue box",
        "a red ball above a red ball",
    ],
)
def test_what_the_world_does_not_hold_is_refused(caption: str) -> None:
    with pytest.raises(ValueError, match="small world"):
        read_arrangement(caption)


def test_swaps_are_other_pictures_of_the_same_words() -> None:
    assert things_swapped(SCENE).caption() == "a blue box to the left of a red ball in the snow"
    assert colours_swapped(SCENE).caption() == "a blue ball to the left of a red box in the snow"
    assert things_swapped(SCENE).said_otherwise().caption() == "a red ball to the right of a blue box in the snow"
    assert SCENE.said_otherwise().caption() == "a blue box to the right of a red ball in the snow"
    for swap in (things_swapped, colours_swapped, Arrangement.said_otherwise):
        assert swap(swap(SCENE)) == SCENE
        assert sorted(swap(SCENE).caption().replace("right", "left").split()) == sorted(SCENE.caption().split())


def test_every_scene_differs_in_what_it_shows() -> None:
    everything = list(every_arrangement())
    assert len(everything) == len({scene.caption() for scene in everything}) == 48 * 47 * 4 * 4
    assert set(drawn(300)) < set(everything)
    assert all(scene.first != scene.second for scene in everything)


def test_one_scene_in_twenty_is_held_out_together_with_what_its_words_can_be_turned_into() -> None:
    held_out = [scene for scene in every_arrangement() if is_held_out(scene)]
    assert 0.8 / HELD_OUT < len(held_out) / (48 * 47 * 16) < 1.2 / HELD_OUT
    for scene in held_out[::7]:
        for swap in (things_swapped, colours_swapped, Arrangement.said_otherwise):
            assert is_held_out(swap(scene))
        assert all(is_held_out(replace(scene, place=place)) for place in PLACES)
    # No word is held out by itself.
    said = Counter(word for scene in held_out for word in scene.caption().split())
    assert all(said[word] for word in (*COLOURS, "ball", "box", "star", "heart", "house", "tree", "fish", "car"))
    assert {scene.relation for scene in held_out} == set(RELATIONS)


def test_both_ways_to_say_it_are_one_picture_and_a_swap_is_another() -> None:
    for scene in drawn(20):
        picture = paint_arrangement(scene, np.random.default_rng(0))
        assert picture.shape == (SIZE, SIZE, 3)
        assert np.array_equal(picture, paint_arrangement(scene.said_otherwise(), np.random.default_rng(0)))
        assert not np.array_equal(picture, paint_arrangement(things_swapped(scene), np.random.default_rng(0)))


def test_things_keep_clear_of_each_other_and_of_the_border() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scene = replace(sample_arrangement(rng), place="")
        scene = replace(scene, first=replace(scene.first, colour="red"), second=Thing("blue", scene.second.object))
        picture = paint_arrangement(scene, rng).astype(int)
        masks = [picture[..., channel] - picture[..., 2 - channel] > 40 for channel in (0, 2)]
        for mask in masks:
            assert mask.any() and not mask[[0, -1]].any() and not mask[:, [0, -1]].any()
        axis = 0 if RELATIONS[scene.relation][0] else 1
        first, second = (np.flatnonzero(mask.any(axis)) for mask in masks)
        gap = second[0] - first[-1] if sum(RELATIONS[scene.relation]) < 0 else first[0] - second[-1]
        assert gap >= 2, scene
