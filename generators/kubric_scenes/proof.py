"""Proof, before a pair is kept, that two renders show what their captions say and differ by hardly anything else.

EqBen (section B.4) trusts its generator; here a scene that does not show its caption is drawn again. Objects are
measured from masks, depth and where they stand. Light is real: an object darkens, colours and mirrors itself in what is
near. What it is or stands in, and its shadow, may differ as it likes; everything else may differ so little that nobody
sees it.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from twinset.generators.kubric_scenes.captions import Drawn, Relation, Size
from twinset.generators.kubric_scenes.composition import Standing, Things
from twinset.generators.kubric_scenes.geometry import Picture, Quaternion, Refuted, Vector, View, paint, project

FOOT = 0.2  # of the height of an outline
MIN_VISIBLE = 0.55  # of a thing's outline
MIN_VISIBLE_BELOW = 0.35  # of that of a thing on which another one lies
MIN_COUNTED_VISIBLE = 0.7  # of each counted one: half a thing is easily overlooked
MIN_SHARE = 0.0035  # of the picture: 30 × 30 of 512 × 512 pixels
MIN_FOOT = 0.5  # of the foot of what stands behind: else it seems to stand on what stands before it
MIN_GAP = 0.012  # of the picture's height between that foot and the upper edge of what stands before it, likewise
BESIDE_OVERLAP = 0.2  # of the narrower box's width that two things side by side may share
DEPTH_OVERLAP = 0.3  # of the narrower box's width that two things one behind the other must share
MAX_ASIDE = 0.5  # of the subject's width: how far the middle of what is in front or behind may lie beside its middle
MAX_SMALL = 0.95  # of what a large thing is in the picture: what a small one may be at most
MIN_CONTACT = 0.6  # of the foot of what lies on top: else nobody sees what it stands on

STRIP = 0.016  # of the picture's width: how far to either side of an outline colours are averaged
TOLD_APART = 10.0  # CIELAB ΔE*ab (CIE 1976) between the two sides of an outline, from which it is seen
MIN_TOLD_APART = 0.4  # of each piece of an outline: a person lost black objects at 0.38, and saw a grey hat at 0.45
MIN_PIECE = 0.1  # of an object's outline: shorter pieces do not hide what it is
_NEIGHBOURS = np.ones((3, 3), np.uint8)

CHANGED = 24  # steps of 255 by which a pixel must differ to be told from noise
MIN_CHANGED = 0.35  # of the changed thing's pixels
SEEN = 8  # steps of 255: less is not seen when two pictures are shown in turn
MAX_FLOOR = 0.05  # of the pixels beside all things and shadows of changed things
MAX_UNCHANGED = 0.2  # of the pixels of a thing that does not change
NEARBY = 0.03  # of the picture's width around a changed thing and its shadow that counts as these: the sun has a width
MAX_MOVED = 0.15  # of the length of the smaller member of a set: how far from each other both may stand


@dataclass(frozen=True, slots=True)
class Instance:
    """One thing as it is seen.

    box: left, top, right, bottom of its mask in pixels (exclusive to the right and below), zeros when it is not seen.
    centroid: of its mask, pixels. pixels: of its mask. visible: share of its outline that is not hidden (0-1).
    foot: likewise of the outline's lowest fifth.
    depth: median distance from the camera plane, scene units, -1 when it is not seen. cut: whether the border of the
    picture cuts it. position, quaternion: of the asset in the scene. carried: whether it lies on the subject.
    """

    name: str
    asset: str
    size: Size
    box: tuple[int, int, int, int]
    centroid: tuple[float, float]
    pixels: int
    visible: float
    foot: float
    depth: float
    cut: bool
    position: Vector
    quaternion: Quaternion
    carried: bool

    def record(self) -> dict[str, Any]:
        """As it goes into a sample's JSON: rounded; ``cut`` is left out, as nothing kept is cut."""
        return {name: _rounded(value) for name, value in asdict(self).items() if name != "cut"}


def _rounded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_rounded(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value


def measure(things: Sequence[Standing], view: View, picture: Picture) -> list[Instance]:
    """Every thing of a scene in its picture, in order."""
    resolution = picture.instances.shape[0]
    found = []
    for number, standing in enumerate(things, start=1):
        mask = picture.instances == number
        corners, distances = project(standing.points, view, resolution)
        faces = standing.model.faces
        outline = paint(corners[faces], range(len(faces)), mask.shape) >= 0
        rows, columns = np.nonzero(mask)
        seen = len(rows) > 0
        found.append(
            Instance(
                **asdict(standing.thing),
                box=Image.fromarray(mask).getbbox() or (0, 0, 0, 0),
                centroid=(float(columns.mean()) + 0.5, float(rows.mean()) + 0.5) if seen else (0.0, 0.0),
                pixels=len(rows),
                visible=min(1.0, len(rows) / max(1, int(outline.sum()))),
                foot=_foot(mask, outline),
                depth=float(np.median(picture.depth[mask])) if seen else -1.0,
                cut=bool((corners < 0).any() or (corners > resolution).any() or (distances <= 0).any()),
                position=standing.placement.position,
                quaternion=standing.placement.quaternion,
                carried=standing.carried,
            )
        )
    return found


def _foot(mask: NDArray[np.bool_], outline: NDArray[np.bool_]) -> float:
    rows = np.nonzero(outline.any(axis=1))[0]
    if len(rows) == 0:
        return 0.0
    lowest = int(rows[-1] - FOOT * (rows[-1] - rows[0]))
    return min(1.0, int(mask[lowest:].sum()) / int(outline[lowest:].sum()))


def foresee(things: Sequence[Standing], view: View, resolution: int) -> Picture:
    """Outlines as they will hide each other, without light: every triangle painted, the farthest first.

    Its pixels are black and its depth that of each triangle's middle. Good enough to see that a thing will be hidden.
    """
    corners, depths, owners = [], [], []
    for number, standing in enumerate(things, start=1):
        faces = standing.model.faces
        pixels, distance = project(standing.points, view, resolution)
        corners.append(pixels[faces])
        depths.append(distance[faces].mean(axis=1))
        owners.append(np.full(len(faces), number))
    triangles, distances, numbers = np.concatenate(corners), np.concatenate(depths), np.concatenate(owners)
    painted = paint(triangles, np.argsort(-distances, kind="stable"), (resolution, resolution))
    nothing = painted < 0
    return Picture(
        pixels=np.zeros((resolution, resolution, 3), np.uint8),
        instances=np.where(nothing, 0, numbers[painted]).astype(np.uint8),
        depth=np.where(nothing, np.inf, distances[painted]).astype(np.float32),
    )


def prove_image(drawn: Drawn, number: int, seen: Sequence[Instance], picture: Picture) -> None:
    """Raise `Refuted` with the first thing that picture ``number`` (0 or 1) does not show, though ``drawn`` says so.

    seen: its instances, in the order of `generators.kubric_scenes.composition`.
    """
    thing = (drawn.object0, drawn.object1)[number]
    count = (drawn.count0, drawn.count1)[number]
    named = [thing.asset] * count + ([drawn.subject.asset] if drawn.subject is not None else [])
    if [one.asset for one in seen] != named:
        raise Refuted("wrong-count", f"{len(seen)} things where {len(named)} were asked for, or other ones")
    relation = (drawn.relation0, drawn.relation1)[number]
    for place, one in enumerate(seen):
        least = MIN_COUNTED_VISIBLE if drawn.aspect == "counting" else MIN_VISIBLE
        if relation == "on-top" and place == 1:
            least = MIN_VISIBLE_BELOW
        _prove_seen(one, least, picture.instances.size)
    if relation:
        _prove_relation(relation, seen[0], seen[-1], picture.instances.shape[0])
    _prove_sizes(seen[0], seen[-1])


def _prove_seen(one: Instance, least: float, area: int) -> None:
    """Raise `Refuted` unless enough of an instance is seen.

    Args:
        least: share (0-1) of its outline that nothing hides.
        area: of the picture, pixels.
    """
    if one.cut:
        raise Refuted("cut-off", f"{one.name} is cut by the border")
    if one.pixels == 0 or one.visible < least:
        raise Refuted("hidden", f"{one.visible:.0%} of {one.name} is seen")
    if one.pixels < MIN_SHARE * area:
        raise Refuted("too-small", f"{one.name} takes {one.pixels / area:.2%} of the picture")


def _prove_relation(relation: Relation, thing: Instance, subject: Instance, height: int) -> None:
    """Raise `Refuted` unless a relation, and none of the other four, holds as the viewer sees it.

    height: of the picture, pixels.
    """
    if relation == "on-top":
        if not thing.carried:
            raise Refuted("not-on-top", f"{thing.name} does not lie on {subject.name}")
        if thing.centroid[1] >= subject.centroid[1]:
            raise Refuted("not-on-top", f"{thing.name} is not seen above {subject.name}")
        if thing.foot < MIN_CONTACT:
            raise Refuted("foot-hidden", f"{thing.foot:.0%} of the foot of {thing.name} is seen on {subject.name}")
        return
    if thing.carried:
        raise Refuted("wrong-relation", f"{thing.name} lies on {subject.name}")
    # Positions are of the assets' centres of mass: across and away from the viewer.
    across = thing.centroid[0] - subject.centroid[0]
    shared = _shared(thing, subject)
    if relation in ("left", "right"):
        if (across > 0) != (relation == "right") or shared > BESIDE_OVERLAP:
            raise Refuted(
                "wrong-relation", f"{thing.name} is seen {across:+.0f} pixels to the right, sharing {shared:.0%}"
            )
        if abs(thing.position[1] - subject.position[1]) > 0.6 * abs(thing.position[0] - subject.position[0]):
            raise Refuted("wrong-relation", f"{thing.name} is as much before or behind {subject.name} as beside it")
        return
    nearer = thing.depth < subject.depth
    if nearer != (relation == "in-front") or shared < DEPTH_OVERLAP:
        away = thing.depth - subject.depth
        raise Refuted("wrong-relation", f"{thing.name} is {away:+.2f} farther away, sharing {shared:.0%} of the width")
    middles = [(one.box[0] + one.box[2]) / 2 for one in (thing, subject)]
    aside = abs(middles[0] - middles[1]) / (subject.box[2] - subject.box[0])
    if aside > MAX_ASIDE:
        raise Refuted("off-axis", f"{thing.name} is seen {aside:.2f} times the width of {subject.name} beside it")
    near, far = (thing, subject) if nearer else (subject, thing)
    gap = (near.box[1] - far.box[3]) / height
    if far.foot < MIN_FOOT or abs(gap) < MIN_GAP:
        seen = f"{far.foot:.0%} of its foot is seen, {gap:+.1%} of the picture above"
        raise Refuted("foot-hidden", f"{far.name} could be taken to stand on {near.name}: {seen}")


def _prove_sizes(one: Instance, other: Instance) -> None:
    """Raise `Refuted` unless what is called small looks smaller than what is called large, in area and in length."""
    if {one.size, other.size} != {"small", "large"}:
        return
    small, large = (one, other) if one.size == "small" else (other, one)
    area = small.pixels / small.visible / (large.pixels / large.visible)
    diagonals = [math.hypot(each.box[2] - each.box[0], each.box[3] - each.box[1]) for each in (small, large)]
    length = diagonals[0] / diagonals[1]
    if max(area, length) >= MAX_SMALL:
        seen = f"{area:.2f} times the area and {length:.2f} times the length of {large.name}"
        raise Refuted("size-not-seen", f"small {small.name} has {seen}")


def _shared(one: Instance, other: Instance) -> float:
    """Overlap of two boxes' widths as a share of the narrower one."""
    overlap = min(one.box[2], other.box[2]) - max(one.box[0], other.box[0])
    return max(0, overlap) / max(1, min(one.box[2] - one.box[0], other.box[2] - other.box[0]))


def prove_contrast(named: Sequence[Instance], picture: Picture) -> None:
    """Raise `Refuted` unless every named object stands out from the ground and from every one that it borders on.

    Args:
        named: what captions name, the first instances of the picture, in the order of its numbers.
        picture: a render; `generators.kubric_scenes.proof.foresee` has no colours.
    """
    colours = np.asarray(cv2.cvtColor(picture.pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), np.float32)
    outlines = [_outline(colours, picture.instances == number) for number in range(1, len(named) + 1)]
    areas = [_grown(picture.instances == number) for number in range(len(named) + 1)]
    for outline, one in zip(outlines, named, strict=True):
        if (share := _told_apart(outline, areas[0])) < MIN_TOLD_APART:
            raise Refuted("blends-in", f"{share:.0%} of the outline of {one.name} differs in colour from the ground")
    for first, second in combinations(range(len(named)), 2):
        # Two objects meet in one line. It is seen when it is seen from either side of it.
        shares = _told_apart(outlines[first], areas[second + 1]), _told_apart(outlines[second], areas[first + 1])
        if max(shares) < MIN_TOLD_APART:
            seen = f"{max(shares):.0%} of the line between {named[first].name} and {named[second].name}"
            raise Refuted("blends-in", f"{seen} differs in colour")


#: Innermost pixels along the border of a mask, (height, width), and for each of these ΔE*ab between its two sides.
_Outline = tuple[NDArray[np.bool_], NDArray[np.float32]]


def _outline(colours: NDArray[np.float32], mask: NDArray[np.bool_]) -> _Outline:
    """colours: (height, width, 3), CIELAB, L* 0-100. mask: (height, width), of one object."""
    edge = mask & _grown(~mask)
    size = 2 * max(1, round(STRIP * mask.shape[1])) + 1
    inside, outside = (_mean(colours, side, size)[edge] for side in (mask, ~mask))
    return edge, np.linalg.norm(inside - outside, axis=1)


def _told_apart(outline: _Outline, area: NDArray[np.bool_]) -> float:
    """Share of an outline's piece along an area that is seen (0-1); 1 where the piece is too short to count."""
    edge, differences = outline
    piece = differences[area[edge]]
    return float((piece >= TOLD_APART).mean()) if len(piece) > MIN_PIECE * len(differences) else 1.0


def _grown(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return cv2.dilate(mask.astype(np.uint8), _NEIGHBOURS).astype(bool)


def _mean(colours: NDArray[np.float32], part: NDArray[np.bool_], size: int) -> NDArray[np.float32]:
    """For each pixel the mean colour of a part of the square around it, ``size`` pixels wide."""
    weight = part.astype(np.float32)
    count, total = (
        cv2.boxFilter(each, -1, (size, size), normalize=False, borderType=cv2.BORDER_CONSTANT)
        for each in (weight, colours * weight[..., None])
    )
    return np.asarray(total / np.maximum(count, 1.0)[..., None], np.float32)


def prove_spot(drawn: Drawn, first: Standing, second: Standing) -> None:
    """Raise `Refuted` unless the members of an attribute pair stand on one spot: the middles of their bounds."""
    if drawn.aspect != "attribute":
        return
    lows, highs = (np.array([edge(one.points, axis=0) for one in (first, second)]) for edge in (np.min, np.max))
    apart = float(np.linalg.norm(np.diff((lows + highs)[:, :2] / 2, axis=0)))
    moved = apart / float((highs - lows).max(axis=1).min())
    if moved > MAX_MOVED:
        raise Refuted("moved", f"{second.thing.name} lies {moved:.0%} of its length beside {first.thing.name}'s place")


def prove_change(drawn: Drawn, view: View, things: tuple[Things, Things], pictures: tuple[Picture, Picture]) -> None:
    """Raise `Refuted` unless two pictures differ where the changed things are, and almost nowhere else.

    What carries another thing takes its shadow, and is not looked at.

    Args:
        things: what stands in each, in the order of its mask's numbers.
    """
    first, second = pictures
    difference = np.abs(first.pixels.astype(np.int16) - second.pixels.astype(np.int16)).max(axis=2)
    changed, shadow = np.zeros(difference.shape, bool), np.zeros(difference.shape, bool)
    for these, others, picture in ((*things, first), (*things[::-1], second)):
        placements = [other.placement for other in others]
        for number, standing in enumerate(these, start=1):
            if standing.placement not in placements:
                changed |= picture.instances == number
                shadow |= _shadow(standing, view, difference.shape)
    if drawn.aspect == "attribute" and (share := float((difference[changed] >= CHANGED).mean())) < MIN_CHANGED:
        raise Refuted("change-not-seen", f"{drawn.object0.name} and {drawn.object1.name} differ in {share:.0%}")
    seen, unchanged = difference > SEEN, ~_around(changed)
    floor = ~_around(changed | shadow) & (first.instances == 0) & (second.instances == 0)
    if (share := _share(seen, floor)) > MAX_FLOOR:
        raise Refuted("differs-elsewhere", f"{share:.1%} of the surroundings differs too")
    carries = any(standing.carried for image in things for standing in image)
    places = {standing.placement: place for place, standing in enumerate(things[1], start=1)}
    for place, standing in enumerate(things[0], start=1):
        if carries or standing.placement not in places:
            continue
        part = unchanged & (first.instances == place) & (second.instances == places[standing.placement])
        if (share := _share(seen, part)) > MAX_UNCHANGED:
            raise Refuted("differs-elsewhere", f"{share:.1%} of {standing.thing.name} differs too")


def _shadow(thing: Standing, view: View, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Where in a picture the shadow of a thing's convex hull falls on the floor."""
    points, sun = thing.points, np.asarray(view.sun)
    pixels, _ = project(points - sun * (points[:, 2:] / sun[2]), view, shape[1])
    hull = np.asarray(cv2.convexHull(pixels.astype(np.float32))[:, 0], np.float64)
    return paint(hull[None], [0], shape) >= 0


def _around(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    margin = max(1, round(NEARBY * part.shape[1]))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    return cv2.dilate(part.astype(np.uint8), kernel).astype(bool)


def _share(seen: NDArray[np.bool_], part: NDArray[np.bool_]) -> float:
    return float(seen[part].mean()) if part.any() else 0.0
