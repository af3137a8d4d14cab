"""Proof, before a pair is kept, that two renders show what their captions say and differ by hardly anything else.

EqBen (section B.4) trusts its generator; here a scene that does not show its caption is drawn again. Objects are
measured from masks, depth and where they stand. Light is real: an object darkens, colours and mirrors itself in what is
near. What it is or stands in, and its shadow, may differ as it likes; everything else may differ so little that nobody
sees it.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from twinset.generators.kubric_scenes.captions import Drawn, Relation, Size
from twinset.generators.kubric_scenes.composition import Standing, Things
from twinset.generators.kubric_scenes.geometry import SUN, Picture, Quaternion, Refuted, Vector, View, paint, project

FOOT = 0.2  # of the height of an outline
MIN_VISIBLE = 0.55  # of a thing's outline
MIN_VISIBLE_BELOW = 0.35  # of that of a thing on which another one lies
MIN_COUNTED_VISIBLE = 0.7  # of each counted one: half a thing is easily overlooked
MIN_SHARE = 0.0035  # of the picture: 30 × 30 of 512 × 512 pixels
MIN_FOOT = 0.5  # of the foot of what stands behind: else it seems to stand on what stands before it
MIN_GAP = 0.012  # of the picture's height between that foot and the upper edge of what stands before it, likewise
BESIDE_OVERLAP = 0.2  # of the narrower box's width that two things side by side may share
MAX_BEFORE = 0.6  # of how far a thing is beside another one: how far it may be before or behind it
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
    pixels: of its mask. visible: share of its outline that is not hidden (0-1).
    foot: likewise of the outline's lowest fifth.
    depth: median distance from the camera plane, scene units, -1 when it is not seen.
    position, quaternion: of the asset in the scene. carried: whether it lies on the subject.
    """

    name: str
    asset: str
    size: Size
    box: tuple[int, int, int, int]
    pixels: int
    visible: float
    foot: float
    depth: float
    position: Vector
    quaternion: Quaternion
    carried: bool


def measure(standings: Sequence[Standing], view: View, picture: Picture) -> list[Instance]:
    """Every thing of a scene in its picture, in order."""
    resolution = picture.instances.shape[0]
    instances = []
    for number, standing in enumerate(standings, start=1):
        mask = picture.instances == number
        corners, _ = project(standing.points, view, resolution)
        faces = standing.model.faces
        outline = paint(corners[faces], range(len(faces)), mask.shape) >= 0
        pixels = int(mask.sum())
        instances.append(
            Instance(
                **asdict(standing.named),
                box=Image.fromarray(mask).getbbox() or (0, 0, 0, 0),
                pixels=pixels,
                visible=round(min(1.0, pixels / max(1, int(outline.sum()))), 4),
                foot=round(_foot(mask, outline), 4),
                depth=round(float(np.median(picture.depth[mask])), 4) if pixels else -1.0,
                position=standing.placement.position,
                quaternion=standing.placement.quaternion,
                carried=standing.carried,
            )
        )
    return instances


def _foot(mask: NDArray[np.bool_], outline: NDArray[np.bool_]) -> float:
    rows = np.nonzero(outline.any(axis=1))[0]
    if len(rows) == 0:
        return 0.0
    lowest = int(rows[-1] - FOOT * (rows[-1] - rows[0]))
    return min(1.0, int(mask[lowest:].sum()) / int(outline[lowest:].sum()))


def foresee(standings: Sequence[Standing], view: View, resolution: int) -> Picture:
    """Outlines as they will hide each other, without light: every triangle painted, the farthest first.

    Its pixels are black and its depth that of each triangle's middle. Good enough to see that a thing will be hidden.
    """
    corners, depths, owners = [], [], []
    for number, standing in enumerate(standings, start=1):
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
    expected = (drawn.object0, drawn.object1)[number]
    count = (drawn.count0, drawn.count1)[number]
    named = [expected.asset] * count + ([drawn.subject.asset] if drawn.subject is not None else [])
    if [instance.asset for instance in seen] != named:
        raise Refuted("wrong-count", f"{len(seen)} things where {len(named)} were asked for, or other ones")
    relation = (drawn.relation0, drawn.relation1)[number]
    for place, instance in enumerate(seen):
        least = MIN_COUNTED_VISIBLE if drawn.aspect == "counting" else MIN_VISIBLE
        if relation == "on-top" and place == 1:
            least = MIN_VISIBLE_BELOW
        if instance.visible < least:
            raise Refuted("hidden", f"{instance.visible:.0%} of {instance.name} is seen")
        if (share := instance.pixels / picture.instances.size) < MIN_SHARE:
            raise Refuted("too-small", f"{instance.name} takes {share:.2%} of the picture")
    if relation:
        _prove_relation(relation, seen[0], seen[-1], picture.instances.shape[0])
    _prove_sizes(seen[0], seen[-1])


def _prove_relation(relation: Relation, placed: Instance, subject: Instance, height: int) -> None:
    """Raise `Refuted` unless a relation, and none of the other four, holds as the viewer sees it.

    height: of the picture, pixels.
    """
    if (shown := _relation(placed, subject)) != relation:
        raise Refuted("wrong-relation", f"{placed.name} is seen {shown or 'aslant'} of {subject.name}, not {relation}")
    if relation == "on-top" and placed.foot < MIN_CONTACT:
        raise Refuted("foot-hidden", f"{placed.foot:.0%} of the foot of {placed.name} is seen on {subject.name}")
    if relation in ("in-front", "behind"):
        near, far = (placed, subject) if relation == "in-front" else (subject, placed)
        gap = (near.box[1] - far.box[3]) / height
        if far.foot < MIN_FOOT or abs(gap) < MIN_GAP:
            seen = f"{far.foot:.0%} of its foot is seen, {gap:+.1%} of the picture above"
            raise Refuted("foot-hidden", f"{far.name} could be taken to stand on {near.name}: {seen}")


def _relation(placed: Instance, subject: Instance) -> Relation | Literal[""]:
    """How a thing is placed to the subject, by its mask and depth; empty where no word is plainly right."""
    if placed.carried:
        return "on-top"
    lefts, _, rights, _ = zip(placed.box, subject.box, strict=True)
    widths = [right - left for left, right in zip(lefts, rights, strict=True)]
    aside = (lefts[0] + rights[0] - lefts[1] - rights[1]) / 2
    if abs(aside) <= MAX_ASIDE * widths[1]:
        return "in-front" if placed.depth < subject.depth else "behind"
    across, away, _ = np.abs(np.subtract(placed.position, subject.position))
    if min(rights) - max(lefts) <= BESIDE_OVERLAP * min(widths) and away <= MAX_BEFORE * across:
        return "right" if aside > 0 else "left"
    return ""


def _prove_sizes(first: Instance, second: Instance) -> None:
    """Raise `Refuted` unless what is called small looks smaller than what is called large, in area and in length."""
    if {first.size, second.size} != {"small", "large"}:
        return
    small, large = (first, second) if first.size == "small" else (second, first)
    area = small.pixels / small.visible / (large.pixels / large.visible)
    diagonals = [math.hypot(each.box[2] - each.box[0], each.box[3] - each.box[1]) for each in (small, large)]
    length = diagonals[0] / diagonals[1]
    if max(area, length) >= MAX_SMALL:
        seen = f"{area:.2f} times the area and {length:.2f} times the length of {large.name}"
        raise Refuted("size-not-seen", f"small {small.name} has {seen}")


def prove_contrast(named: Sequence[Instance], picture: Picture) -> None:
    """Raise `Refuted` unless every named object stands out from the ground and from every one that it borders on.

    Args:
        named: what captions name, the first instances of the picture, in the order of its numbers.
        picture: a render; `generators.kubric_scenes.proof.foresee` has no colours.
    """
    colours = np.asarray(cv2.cvtColor(picture.pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB), np.float32)
    size = 2 * max(1, round(STRIP * picture.instances.shape[1])) + 1
    areas = ["the ground", *(instance.name for instance in named)]
    for number, name in enumerate(areas[1:], start=1):
        mask = picture.instances == number
        edge = mask & _grown(~mask)
        apart = np.linalg.norm(_mean(colours, mask, size) - _mean(colours, ~mask, size), axis=2) >= TOLD_APART
        for beside, area in enumerate(areas):
            piece = apart[edge & _grown(picture.instances == beside)]
            if beside != number and len(piece) > MIN_PIECE * edge.sum() and (share := piece.mean()) < MIN_TOLD_APART:
                raise Refuted("blends-in", f"{share:.0%} of the line between {name} and {area} differs in colour")


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
    lows, highs = (np.array([edge(member.points, axis=0) for member in (first, second)]) for edge in (np.min, np.max))
    apart = float(np.linalg.norm(np.diff((lows + highs)[:, :2] / 2, axis=0)))
    moved = apart / float((highs - lows).max(axis=1).min())
    if moved > MAX_MOVED:
        raise Refuted("moved", f"{second.named.name} lies {moved:.0%} of its length beside {first.named.name}'s place")


def prove_change(drawn: Drawn, view: View, standings: tuple[Things, Things], pictures: tuple[Picture, Picture]) -> None:
    """Raise `Refuted` unless two pictures differ where the changed things are, and almost nowhere else.

    What carries another thing takes its shadow, and is not looked at.

    Args:
        standings: what stands in each, in the order of its mask's numbers.
    """
    first, second = pictures
    difference = np.abs(first.pixels.astype(np.int16) - second.pixels.astype(np.int16)).max(axis=2)
    changed, shadow = np.zeros(difference.shape, bool), np.zeros(difference.shape, bool)
    for these, counterparts, picture in ((*standings, first), (*standings[::-1], second)):
        placements = [counterpart.placement for counterpart in counterparts]
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
    carries = any(standing.carried for image in standings for standing in image)
    places = {standing.placement: place for place, standing in enumerate(standings[1], start=1)}
    for place, standing in enumerate(standings[0], start=1):
        if carries or standing.placement not in places:
            continue
        part = unchanged & (first.instances == place) & (second.instances == places[standing.placement])
        if (share := _share(seen, part)) > MAX_UNCHANGED:
            raise Refuted("differs-elsewhere", f"{share:.1%} of {standing.named.name} differs too")


def _shadow(standing: Standing, view: View, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Where in a picture the shadow of a thing's convex hull falls on the floor."""
    points = standing.points
    pixels, _ = project(points - np.array(SUN) * (points[:, 2:] / SUN[2]), view, shape[1])
    hull = np.asarray(cv2.convexHull(pixels.astype(np.float32))[:, 0], np.float64)
    return paint(hull[None], [0], shape) >= 0


def _around(part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    margin = max(1, round(NEARBY * part.shape[1]))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin + 1, 2 * margin + 1))
    return cv2.dilate(part.astype(np.uint8), kernel).astype(bool)


def _share(seen: NDArray[np.bool_], part: NDArray[np.bool_]) -> float:
    return float(seen[part].mean()) if part.any() else 0.0
