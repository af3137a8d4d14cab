"""Looks vary what they say, in bounds, and the plain one as before."""

import math
from collections import Counter

import numpy as np
import pytest

from twinset.generators.kubric_scenes.scene.camera import sample_shot
from twinset.generators.kubric_scenes.scene.composition import lit_from, sunlight
from twinset.generators.kubric_scenes.scene.look import FRONT_TURN, MATERIALS, PLAIN, Look
from twinset.generators.kubric_scenes.scene.surroundings import LIT, lit_by_sun_and_sky, sample_ground


def test_grounds_and_numbers_of_bystanders_are_even() -> None:
    looks = [Look().of_one_pair(np.random.default_rng(seed)) for seed in range(600)]
    grounds = Counter(ground for look in looks for ground in look.grounds)
    bystanders = Counter(look.bystanders for look in looks)
    assert set(grounds) == set(MATERIALS) and set(bystanders) == {0, 1, 2}
    for counts in (grounds, bystanders):
        assert max(counts.values()) < 1.4 * min(counts.values()), counts
    assert PLAIN.of_one_pair(np.random.default_rng(0)) == PLAIN


@pytest.mark.parametrize("material", MATERIALS)
def test_a_ground_is_neither_black_nor_white(material: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        ground = sample_ground((material,), rng)  # type: ignore[arg-type]
        assert ground.material == material
        assert np.mean(ground.dark) < np.mean(ground.light)
        assert 0.08 < (np.mean(ground.dark) + np.mean(ground.light)) / 2 < 0.5
        assert all(0 <= channel <= 0.9 for colour in (ground.light, ground.dark, ground.joint) for channel in colour)


def test_every_light_is_equally_bright() -> None:
    rng = np.random.default_rng(4)
    hard = 0
    for _ in range(200):
        view = lit_by_sun_and_sky(lit_from(sunlight(rng), rng), rng)
        assert view.sky is not None and view.sun[1] < 0 < view.sun[2]
        sky = math.pi * (0.6 * np.mean(view.sky.zenith) + 0.4 * np.mean(view.sky.horizon))
        assert LIT[0] - 0.01 < view.sun_strength * view.sun[2] + sky < LIT[1] + 0.01
        hard += view.sun_angle < math.radians(2)
    assert 40 < hard < 120


def test_turns() -> None:
    rng = np.random.default_rng(5)
    turned = {
        name: np.degrees([np.abs(look.turn(front, 18.0, rng)) for _ in range(300)]).max()
        for name, look, front in (("free", Look(), False), ("front", Look(), True), ("facing", PLAIN, True))
    }
    assert turned["facing"] <= 18 < turned["front"] <= FRONT_TURN < 170 < turned["free"]


def test_cameras_look_down_more_steeply_in_later_tries() -> None:
    for look in (Look(), PLAIN):
        first, last = ([sample_shot(look, n, np.random.default_rng(s)) for s in range(40)] for n in (0, 7))
        assert np.mean([shot.elevation for shot in first]) + 0.2 < np.mean([shot.elevation for shot in last])
        assert all(0 < shot.flattest < shot.elevation for shot in first)
        assert (len({shot.focal_length for shot in first}) == 1) == (look is PLAIN)
