"""What a render shows of each thing, and proof that two renders show what their captions say, before a pair is kept.

EqBen (section B.4) trusts its generator; here a scene that does not show its caption is drawn again. Things are
measured from masks, depth and where they stand.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from twinset.generators.kubric_scenes.scene.camera import paint, project
from twinset.generators.kubric_scenes.scene.composition import Standing
from twinset.generators.kubric_scenes.scene.parts import (
    Drawn,
    Picture,
    Quaternion,
    Refuted,
    Relation,
    Size,
    Vector,
    View,
)

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

    seen: its instances, in the order of `generators.kubric_scenes.scene.composition`.
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
