"""Objects that no caption names: whole and in view in both images, and in nobody's way."""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.scene.camera import axes, project
from twinset.generators.kubric_scenes.scene.composition import Standing
from twinset.generators.kubric_scenes.scene.look import Look
from twinset.generators.kubric_scenes.scene.parts import Drawn, NamedAsset, Points, View, model_of

TRIED = 60  # spots for each
INSIDE = 0.95  # of half a picture, from its centre: what a bystander may reach to
APART = 0.03  # half pictures between a bystander and anything else
PICTURE = 4.0  # area of a picture, in squares of half its width
CLEAR = 0.25  # scene units on the floor between a bystander and all that captions name, and what lies between these
LEAST, MOST = 0.008, 1.0  # area of its box: of the picture at least; of the largest named thing's at most
FLATTEST = 0.05  # fall of a ray to the floor for each unit forward: what is nearer to the horizon is too far away
_Box = NDArray[np.float64]  # left, top, right, bottom, in half pictures from the centre


def add_bystanders(
    drawn: Drawn,
    things: Sequence[Sequence[Standing]],
    view: View,
    look: Look,
    shelf: AssetShelf,
    rng: np.random.Generator,
) -> tuple[Standing, ...]:
    """As many bystanders as a look has and the picture has room for.

    Args:
        things: of either image.
        view: through which both are seen.
    """
    names = unnamed_objects(drawn, shelf)
    if not look.bystanders or not names:
        return ()
    taken = [_box(thing.points, view) for image in things for thing in image]
    largest = max(_area(box) for box in taken)
    # Between two things is inside of the hull of both.
    hulls = [_hull(np.concatenate([thing.points for thing in image])) for image in things]
    found: list[Standing] = []
    for number in rng.permutation(len(names))[: look.bystanders]:
        thing = _thing(names[int(number)], shelf, rng)
        model = model_of(thing, shelf, 1.0)
        turned = look.turn(load_vocabulary().entry(thing.name).front, 180.0, rng)
        for pixel in rng.uniform(-INSIDE, INSIDE, (TRIED, 2)):
            spot = _on_floor(pixel, view)
            if spot is None:
                continue
            standing = Standing(thing, model, model.on_floor(*spot, turned))
            box = _box(standing.points, view)
            if np.abs(box).max() > INSIDE or not PICTURE * LEAST < _area(box) < MOST * largest:
                continue
            if any(_meet(box, other) for other in taken) or any(_within(standing.points, hull) for hull in hulls):
                continue
            found.append(standing)
            taken.append(box)
            break
    return tuple(found)


def unnamed_objects(drawn: Drawn, shelf: AssetShelf) -> list[str]:
    """Names of the general list that can be shown and share neither kind nor noun with what the captions name."""
    vocabulary = load_vocabulary()
    named = [thing.name for thing in (drawn.object0, drawn.object1, drawn.subject) if thing is not None]
    kinds = {vocabulary.entry(name).kind for name in named} - {""}
    nouns = {name.split()[-1] for name in named}
    return [
        name
        for name, entry in vocabulary.objects.items()
        if entry.uses(shelf.entries) and entry.kind not in kinds and name.split()[-1] not in nouns
    ]


def _thing(name: str, shelf: AssetShelf, rng: np.random.Generator) -> NamedAsset:
    uses = load_vocabulary().objects[name].uses(shelf.entries)
    return NamedAsset(name, uses[int(rng.integers(len(uses)))].id)


def _on_floor(pixel: Points, view: View) -> tuple[float, float] | None:
    """What of the floor (x, y) is seen at a place in the picture; None above the horizon or too near to it.

    pixel: to the right and down from the picture's centre, in half pictures.
    """
    camera, (right, up, forward) = np.asarray(view.camera), axes(view).T
    half = view.sensor_width / 2 / view.focal_length
    ray = forward + half * (pixel[0] * right - pixel[1] * up)
    if ray[2] > -FLATTEST:
        return None
    x, y, _ = camera - ray * camera[2] / ray[2]
    return float(x), float(y)


def _box(points: Points, view: View) -> _Box:
    pixels, distances = project(points, view, 2)
    if (distances <= 0).any():
        return np.array([-np.inf, -np.inf, np.inf, np.inf])
    return np.concatenate([pixels.min(axis=0), pixels.max(axis=0)]) - 1


def _area(box: _Box) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))


def _meet(one: _Box, other: _Box) -> bool:
    return bool((one[:2] < other[2:] + APART).all() and (other[:2] < one[2:] + APART).all())


def _hull(points: Points) -> NDArray[np.float32]:
    return np.asarray(cv2.convexHull(points[:, :2].astype(np.float32)))


def _within(points: Points, hull: NDArray[np.float32]) -> bool:
    """Whether a thing's circle on the floor comes nearer than `CLEAR` to a hull."""
    low, high = points.min(axis=0)[:2], points.max(axis=0)[:2]
    middle = (low + high) / 2
    radius = math.hypot(*(high - low)) / 2
    distance = cv2.pointPolygonTest(hull, (float(middle[0]), float(middle[1])), True)  # positive inside
    return distance > -(radius + CLEAR)
