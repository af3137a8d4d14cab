"""Points of a scene come to lie where a pinhole camera shows them, and things fill the picture."""

import numpy as np
import pytest

from twinset.generators.kubric_scenes.scene.camera import FILLED, frame_things, project, unproject
from twinset.generators.kubric_scenes.scene.parts import View

VIEW = View((0.0, -10.0, 0.0), (0.0, 0.0, 0.0), 50.0, 36.0, (0, 0, 1), 1.0, (1, 1, 1), (1, 1, 1))


def test_a_pinhole_camera() -> None:
    pixels, distances = project(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 10.0, 1.0]]), VIEW, 360)
    # 50 mm before a sensor of 36 mm and 360 pixels: 500 pixels a unit at distance 1.
    assert pixels == pytest.approx(np.array([[180, 180], [230, 180], [180, 155]]))
    assert distances == pytest.approx([10, 10, 20])


def test_pixels_lead_back_to_the_scene() -> None:
    view = View((1.0, -6.0, 3.0), (0.2, 0.1, 0.3), 50.0, 36.0, (0, 0, 1), 1.0, (1, 1, 1), (1, 1, 1))
    depth = np.random.default_rng(3).uniform(4, 9, (20, 20)).astype(np.float32)
    pixels, distances = project(unproject(depth, view).reshape(-1, 3), view, 20)
    rows, columns = np.indices(depth.shape) + 0.5
    assert pixels == pytest.approx(np.stack([columns.ravel(), rows.ravel()], axis=1), abs=1e-4)
    assert distances == pytest.approx(depth.ravel(), rel=1e-5)


def test_things_lie_where_a_picture_wants_them() -> None:
    points = np.random.default_rng(7).uniform((-1, -1, 0), (1, 1, 2), (50, 3))
    pixels, _ = project(points, frame_things(VIEW, points, 0.5, filled=0.6, aside=(0.1, 0.25)), 2)
    middle, half = (pixels.max(axis=0) + pixels.min(axis=0)) / 2 - 1, (pixels.max(axis=0) - pixels.min(axis=0)) / 2
    assert middle == pytest.approx([0.1, 0.25], abs=0.02) and half.max() == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("elevation", [0.3, 0.5, 0.7])
def test_everything_fits_and_nothing_is_small(elevation: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        points = rng.uniform(-1, 1, (50, 3)) * rng.uniform(0.2, 3, 3) + [0, 0, 3]
        view = frame_things(VIEW, points, elevation)
        pixels, distances = project(points, view, 2)
        extent = np.abs(pixels - 1).max()
        assert (distances > 0).all() and FILLED * 0.93 < extent < FILLED * 1.07
