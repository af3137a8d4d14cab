"""Proof by masks, depth and pixels that a render shows its caption."""

import math
from collections.abc import Sequence

import numpy as np

from twinset.generators.kubric_scenes.proof import (
    BESIDE_OVERLAP,
    DEPTH_OVERLAP,
    MIN_COUNTED_VISIBLE,
    MIN_FOOT,
    MIN_GAP,
    MIN_VISIBLE,
    MIN_VISIBLE_BELOW,
    Instance,
    prove_seen,
)
from twinset.generators.kubric_scenes.scene.composition import Refuted
from twinset.generators.kubric_scenes.scene.parts import Picture
from twinset_demo.kubric_grammar.colours import of_colour
from twinset_demo.kubric_grammar.grammar import Scene, sheltered
from twinset_demo.kubric_grammar.vocabulary import Relation

NEXT_TO = 0.8  # times the width of the wider one, at most, between what stands next to each other
FAR_APART = 1.2  # likewise, at least, between what is far away from each other
MIN_COLOURED = 0.3  # of an object's pixels: a bottle has a black cap, a bed white sheets
ABOVE = 0.4  # of the carrier's height in the picture: where the lower edge of what lies on it must be above
SLACK = 0.1  # of the height of what has legs: how far below its feet the edge of what stands between them is seen
Box = tuple[float, float, float, float]


def prove_placed(scene: Scene, owners: Sequence[int], seen: Sequence[Instance], area: int) -> None:
    """Raise `Refuted` with the first thing said of places that a picture does not show.

    Args:
        owners: the phrase of each instance.
        area: of the picture in pixels.
    """
    groups = [[one for one, owner in zip(seen, owners, strict=True) if owner == n] for n in range(len(scene.phrases))]
    for number, (phrase, group) in enumerate(zip(scene.phrases, groups, strict=True)):
        if len(group) != phrase.count:
            raise Refuted("wrong-count", f"{len(group)} of {phrase.count} {phrase.words} are there")
        least = MIN_COUNTED_VISIBLE if phrase.count > 1 else MIN_VISIBLE
        if any(relation in ("on", "under") for relation in scene.relations[max(0, number - 1) : number + 1]):
            least = MIN_VISIBLE_BELOW
        for one in group:
            prove_seen(one, least, area)
    for number, relation in enumerate(scene.relations):
        first, second = groups[number : number + 2]
        if relation == "under" and sheltered(*scene.phrases[number : number + 2]):
            _prove_below(first[0], second[0])
        elif relation in ("on", "under"):
            upper, lower = (first[0], second[0]) if relation == "on" else (second[0], first[0])
            _prove_lying(upper, lower, seen)
        elif relation in ("front", "behind"):
            near, far = (first, second) if relation == "front" else (second, first)
            _prove_depth(near, far, math.sqrt(area))
        else:
            _prove_aside(relation, first, second)


def prove_colours(scene: Scene, owners: Sequence[int], picture: Picture) -> None:
    """Raise `Refuted` with the first object whose pixels do not have the colour that the caption says."""
    for number, owner in enumerate(owners, start=1):
        phrase = scene.phrases[owner]
        if not phrase.said:
            continue
        share = coloured(picture, number, phrase.colour)
        if share < MIN_COLOURED:
            raise Refuted("wrong-colour", f"{share:.0%} of {phrase.words} is {phrase.colour}")


def coloured(picture: Picture, number: int, colour: str) -> float:
    """The share of an object's pixels that have a colour. number: of its mask."""
    pixels = picture.pixels[picture.instances == number]
    return float(of_colour(pixels, colour).mean()) if len(pixels) else 0.0


def _prove_lying(upper: Instance, lower: Instance, seen: Sequence[Instance]) -> None:
    if upper.rests_on != (list(seen).index(lower),):
        raise Refuted("not-on-top", f"{upper.name} rests on something else than {lower.name} alone")
    height = lower.box[3] - lower.box[1]
    if upper.centroid[1] >= lower.centroid[1] or upper.box[3] > lower.box[3] - ABOVE * height:
        raise Refuted("not-on-top", f"{upper.name} is not seen above {lower.name}")


def _prove_below(inner: Instance, over: Instance) -> None:
    inside = over.box[0] <= inner.box[0] and inner.box[2] <= over.box[2] and over.box[1] < inner.box[1]
    inside = inside and inner.box[3] <= over.box[3] + SLACK * (over.box[3] - over.box[1])
    if not inside or inner.centroid[1] <= (over.box[1] + over.box[3]) / 2:
        raise Refuted("wrong-relation", f"{inner.name} is not seen below {over.name}")


def _prove_depth(near: Sequence[Instance], far: Sequence[Instance], height: float) -> None:
    if max(one.depth for one in near) >= min(one.depth for one in far):
        raise Refuted("wrong-relation", f"{near[0].name} is not nearer than {far[0].name}")
    shared = _shared(_bounds(near), _bounds(far))
    if shared < DEPTH_OVERLAP:
        raise Refuted("wrong-relation", f"{near[0].name} and {far[0].name} share {shared:.0%} of the width")
    if any(one.foot < MIN_FOOT for one in far):
        raise Refuted("hidden", f"too little of the foot of {far[0].name} is seen")
    if abs(_bounds(near)[1] - _bounds(far)[3]) < MIN_GAP * height:
        raise Refuted("hidden", f"{far[0].name} could be taken to stand on {near[0].name}")


def _prove_aside(relation: Relation, first: Sequence[Instance], second: Sequence[Instance]) -> None:
    one, other = _bounds(first), _bounds(second)
    shared = _shared(one, other)
    if shared > BESIDE_OVERLAP:
        raise Refuted("wrong-relation", f"{first[0].name} and {second[0].name} share {shared:.0%} of the width")
    left, right = (one, other) if one[0] + one[2] < other[0] + other[2] else (other, one)
    if relation in ("left", "right") and (left is one) is not (relation == "left"):
        raise Refuted("wrong-relation", f"{first[0].name} is seen on the other side of {second[0].name}")
    gap = (right[0] - left[2]) / max(one[2] - one[0], other[2] - other[0])
    if (relation == "beside" and gap > NEXT_TO) or (relation == "far" and gap < FAR_APART):
        raise Refuted("wrong-relation", f"{first[0].name} and {second[0].name} are {gap:.1f} widths apart")
    across = np.mean([thing.position for thing in first], axis=0) - np.mean(
        [thing.position for thing in second], axis=0
    )
    if abs(across[1]) > 0.6 * abs(across[0]):
        raise Refuted("wrong-relation", f"{first[0].name} is as much before or behind {second[0].name} as beside it")


def _bounds(group: Sequence[Instance]) -> Box:
    boxes = np.array([one.box for one in group])
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _shared(one: Box, other: Box) -> float:
    """Overlap of two boxes' widths as a share of the narrower one."""
    overlap = min(one[2], other[2]) - max(one[0], other[0])
    return max(0.0, overlap) / max(1.0, min(one[2] - one[0], other[2] - other[0]))
