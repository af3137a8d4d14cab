"""What is rendered: the right things at the right places, and the same bytes however it comes about."""

from dataclasses import replace

import numpy as np
import pytest

from twinset.generators.kubric_scenes.assets import AssetShelf
from twinset.generators.kubric_scenes.geometry import Picture, Placement, View
from twinset.generators.kubric_scenes.studio import Studio

VIEW = View((0.0, -8.1, 3.8), (0.0, 0.0, 0.3), (0.5, 0.48, 0.45))
UPRIGHT = (1.0, 0.0, 0.0, 0.0)
BOX = Placement("box", 0.5, (-1.0, 0.0, 0.25), UPRIGHT)
CAN = Placement("can", 0.5, (0.0, 0.0, 0.4), UPRIGHT)
THINGS = (BOX, CAN, Placement("ball", 0.5, (1.0, 0.0, 0.4), UPRIGHT))
SIZE = (96, 64)


def content(picture: Picture) -> list[bytes]:
    return [part.tobytes() for part in (picture.pixels, picture.instances, picture.depth)]


@pytest.mark.slow
def test_a_picture_shows_its_placements_and_is_the_same_bytes_whatever_came_before_and_on_any_threads(
    shelf: AssetShelf,
) -> None:
    picture = Studio(shelf, SIZE, samples=4).render(VIEW, THINGS, seed=1)
    assert (picture.pixels.shape, picture.pixels.dtype, picture.instances.dtype) == ((64, 96, 3), np.uint8, np.uint8)
    assert set(np.unique(picture.instances)) == {0, 1, 2, 3}
    masks = [picture.instances == number for number in (1, 2, 3)]
    columns = [np.nonzero(mask)[1].mean() for mask in masks]
    assert columns == sorted(columns)
    assert [picture.pixels[mask].mean(axis=0).argmax() for mask in masks[:2]] == [0, 2]  # a red box, a blue can
    # The can's front is 0.3 before its axis; the camera stands 8.1 before and looks down a little.
    assert picture.depth[masks[1]].min() == pytest.approx(8.3, abs=0.5)

    studio = Studio(shelf, SIZE, samples=4, threads=1)
    studio.render(replace(VIEW, camera=(1.0, -5.0, 3.0), floor=(0.1, 0.5, 0.2)), [CAN, CAN], seed=9)
    assert content(studio.render(VIEW, THINGS, seed=1)) == content(picture)
    assert content(studio.render(VIEW, THINGS, seed=2)) != content(picture)
