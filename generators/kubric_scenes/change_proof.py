"""Proof that two renders differ by what their captions say, and hardly anywhere else.

Light is real: a thing darkens, colours and mirrors itself in what is near. What it is or stands in, and its shadow, may
differ as it likes; everything else may differ so little that nobody sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.proof import Refuted
from twinset.generators.kubric_scenes.scene.camera import unproject
from twinset.generators.kubric_scenes.scene.composition import Standing
from twinset.generators.kubric_scenes.scene.parts import Drawn, Picture, View
from twinset.generators.kubric_scenes.scene.shadows import Shadow, carries, changed

CHANGED = 24  # steps of 255 by which a pixel must differ to be told from noise
MIN_CHANGED = 0.35  # of the changed thing's pixels
SEEN = 8  # steps of 255: less is not seen when two pictures are shown in turn
MAX_FLOOR = 0.05  # of the pixels beside all things and shadows of changed things
MAX_UNCHANGED = 0.2  # of the pixels of a thing that does not change
NEARBY = 0.03  # of the picture's width around a changed thing that counts as the thing: its contact shadow
MAX_MOVED = 0.15  # of the length of the smaller member of a set: how far from each other both may stand
Both = tuple[Sequence[Standing], Sequence[Standing]]


def prove_spot(drawn: Drawn, first: Standing, second: Standing) -> Refuted | None:
    """None when the members of an attribute pair stand on one spot, the middles of their bounds on the floor."""
    if drawn.aspect != "attribute":
        return None
    lows, highs = (np.array([edge(one.points, axis=0) for one in (first, second)]) for edge in (np.min, np.max))
    apart = float(np.linalg.norm(np.diff((lows + highs)[:, :2] / 2, axis=0)))
    moved = apart / float((highs - lows).max(axis=1).min())
    if moved > MAX_MOVED:
        return Refuted("moved", f"{second.thing.name} lies {moved:.0%} of its length beside {first.thing.name}'s place")
    return None


def prove_change(drawn: Drawn, view: View, things: Both, pictures: tuple[Picture, Picture]) -> Refuted | None:
    """None when two pictures differ where the changed things are, and almost nowhere else.

    Args:
        things: what stands in each, in the order of its mask's numbers.
    """
    first, second = pictures
    difference = np.abs(first.pixels.astype(np.int16) - second.pixels.astype(np.int16)).max(axis=2)
    shadow = np.zeros(difference.shape, bool)
    numbers: list[list[int]] = []
    for these, others, picture in ((*things, first), (*things[::-1], second)):
        numbers.append([number for number, one in enumerate(these, start=1) if changed(one, others)])
        casters = [these[number - 1] for number in numbers[-1]]
        if casters and (view.sun_strength > 0 or view.background is not None):
            shadow |= Shadow([(one.points, one.model.faces) for one in casters], view.sun).covers(
                unproject(picture.depth, view)
            )
    thing = np.isin(first.instances, numbers[0]) | np.isin(second.instances, numbers[1])
    if drawn.aspect == "attribute" and (share := float((difference[thing] >= CHANGED).mean())) < MIN_CHANGED:
        return Refuted("change-not-seen", f"{drawn.object0.name} and {drawn.object1.name} differ in {share:.0%}")
    seen = (difference > SEEN) & ~_around(thing)
    floor = ~_around(thing) & ~shadow & (first.instances == 0) & (second.instances == 0)
    if (share := _share(seen, floor)) > MAX_FLOOR:
        return Refuted("differs-elsewhere", f"{share:.1%} of the surroundings differs too")
    for number, one in enumerate(things[0], start=1):
        if number in numbers[0]:
            continue
        again = next(place for place, other in enumerate(things[1], start=1) if other.placement == one.placement)
        part = ~_around(thing) & (first.instances == number) & (second.instances == again)
        if carries(number - 1, things[0]) or carries(again - 1, things[1]):
            part &= ~shadow  # what lies on a thing throws its shadow there
        if (share := _share(seen, part)) > MAX_UNCHANGED:
            return Refuted("differs-elsewhere", f"{share:.1%} of {one.thing.name} differs too")
    return None


def _around(thing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A mask and what is near it."""
    margin = max(1, round(NEARBY * thing.shape[1]))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    return cv2.dilate(thing.astype(np.uint8), kernel).astype(bool)


def _share(found: NDArray[np.bool_], part: NDArray[np.bool_]) -> float:
    return float(found[part].mean()) if part.any() else 0.0
