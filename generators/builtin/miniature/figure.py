"""The actor: a jointed human figure posed by simple inverse kinematics, drawn from the side or from the front."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from generators.builtin.miniature.canvas import Canvas, Colour, Point, shade

FLOOR = 216.0  # picture row that feet stand on
TORSO, NECK, THIGH, SHIN, UPPER_ARM, FOREARM = 45.0, 15.0, 31.0, 31.0, 23.0, 22.0
STANDING = 64.0  # height of the hips above the floor
Hand = Point  # where a hand is: (forward, up) from the shoulder, in pixels


@dataclass(frozen=True, slots=True)
class Looks:
    """What the actor wears."""

    shirt: Colour
    trousers: Colour
    hair: Colour
    skin: Colour = (224, 172, 134)
    long_hair: bool = False


@dataclass(frozen=True, slots=True)
class Pose:
    """A whole pose, in pixels and radians.

    x, hips: position of the hips, and their height above the floor. facing: 1 right, -1 left, 0 the viewer.
    lean: of the trunk, forwards. nod: of the head, downwards, beyond the trunk's own lean.
    near, far: hands, seen from the shoulder as (forward, up); from the front as (outward, up).
    near_foot, far_foot: (forward, up) from the point of the floor under the hips.
    """

    x: float
    facing: int
    hips: float = STANDING
    lean: float = 0.0
    nod: float = 0.0
    near: Hand = (5.0, -42.0)
    far: Hand = (-3.0, -42.0)
    near_foot: Point = (5.0, 0.0)
    far_foot: Point = (-5.0, 0.0)

    def shoulder(self) -> Point:
        """Where the arms begin, in the picture."""
        side = self.facing or 1
        return (
            self.x + side * math.sin(self.lean) * (TORSO - 4),
            FLOOR - self.hips - math.cos(self.lean) * (TORSO - 4),
        )

    def hand(self, which: str) -> Point:
        """Where a hand (``near``, ``far``, or ``both``: between the two) is in the picture, within the arm's reach."""
        if which == "both":
            near, far = self.hand("near"), self.hand("far")
            return (near[0] + far[0]) / 2, (near[1] + far[1]) / 2
        offset = self.near if which == "near" else self.far
        forward, up = offset
        root = self.shoulder()
        side = self.facing
        if self.facing == 0:
            side = 1 if which == "near" else -1
            root = root[0] + 13 * side, root[1]
        reach = min(1.0, (UPPER_ARM + FOREARM - 0.5) / max(1e-6, math.hypot(forward, up)))
        return root[0] + side * forward * reach, root[1] - up * reach

    def reaching(self, near: Point | None = None, far: Point | None = None) -> Pose:
        """This pose with hands at points of the picture (side view only)."""
        x, y = self.shoulder()
        moved = {name: (self.facing * (p[0] - x), y - p[1]) for name, p in (("near", near), ("far", far)) if p}
        return replace(self, **moved)  # type: ignore[arg-type]


def between(a: Pose, b: Pose, share: float) -> Pose:
    """The pose on the way from ``a`` (share 0) to ``b`` (share 1); the body turns around half way."""
    mixed: dict[str, object] = {}
    for field in fields(Pose):
        before, after = getattr(a, field.name), getattr(b, field.name)
        if field.name == "facing":
            mixed[field.name] = after if share >= 0.5 else before
        elif isinstance(before, tuple):
            mixed[field.name] = tuple(p + (q - p) * share for p, q in zip(before, after, strict=True))
        else:
            mixed[field.name] = before + (after - before) * share
    return Pose(**mixed)  # type: ignore[arg-type]


def joint(root: Point, end: Point, first: float, second: float, bend: float) -> tuple[Point, Point]:
    """Middle joint and true end of a two-bone limb that reaches for ``end``; ``bend`` (1 or -1) picks the side."""
    dx, dy = end[0] - root[0], end[1] - root[1]
    distance = min(max(math.hypot(dx, dy), abs(first - second) + 0.1), first + second - 0.1)
    along = math.atan2(dy, dx)
    corner = math.acos((first**2 + distance**2 - second**2) / (2 * first * distance))
    middle = (root[0] + first * math.cos(along + bend * corner), root[1] + first * math.sin(along + bend * corner))
    return middle, (root[0] + distance * math.cos(along), root[1] + distance * math.sin(along))


class Figure:
    """Draws an actor's pose in two layers, so that what is held lies between body and near arm."""

    def __init__(self, looks: Looks) -> None:
        self.looks = looks

    def body(self, canvas: Canvas, pose: Pose) -> None:
        """All but the near arm (from the front: all but both arms)."""
        if pose.facing == 0:
            self._front(canvas, pose)
            return
        self._arm(canvas, pose, "far", 0.8)
        self._leg(canvas, pose, pose.far_foot, 0.75)
        self._leg(canvas, pose, pose.near_foot, 1.0)
        hips, neck = (pose.x, FLOOR - pose.hips), self._neck(pose)
        canvas.limb([hips, neck], 19, 23, self.looks.shirt)
        self._profile(canvas, pose, neck)

    def arms(self, canvas: Canvas, pose: Pose) -> None:
        """The near arm, or both arms of an actor who faces the viewer."""
        for which in ("near",) if pose.facing else ("far", "near"):
            self._arm(canvas, pose, which, 0.93)

    def _neck(self, pose: Pose) -> Point:
        side = pose.facing or 1
        return (
            pose.x + side * math.sin(pose.lean) * TORSO,
            FLOOR - pose.hips - math.cos(pose.lean) * TORSO,
        )

    def _arm(self, canvas: Canvas, pose: Pose, which: str, light: float) -> None:
        root = pose.shoulder()
        if pose.facing == 0:
            side = 1 if which == "near" else -1
            root, bend = (root[0] + 13 * side, root[1] + 1), float(-side if pose.hand(which)[1] > root[1] else side)
        else:
            bend = float(pose.facing)
        elbow, hand = joint(root, pose.hand(which), UPPER_ARM, FOREARM, bend)
        skin = shade(self.looks.skin, light)
        canvas.limb([elbow, hand], 8, 6, skin)
        canvas.limb([root, elbow], 11, 9, shade(self.looks.shirt, light))
        canvas.ellipse(hand, 4.6, 4.6, shade(skin, 0.85))
        canvas.ellipse(hand, 3.8, 3.8, skin)

    def _leg(self, canvas: Canvas, pose: Pose, foot: Point, light: float) -> None:
        side = pose.facing
        hips = (pose.x, FLOOR - pose.hips)
        ankle = (pose.x + side * foot[0], FLOOR - 4 - foot[1])
        knee, ankle = joint(hips, ankle, THIGH, SHIN, -float(side))
        trousers = shade(self.looks.trousers, light)
        flat = foot[1] < 25  # a raised foot points along the shin
        toe = (ankle[0] + side * 9, ankle[1] + 1.5) if flat else (ankle[0] + side * 3, ankle[1] - 9)
        canvas.limb([ankle, toe], 7, 6, shade((70, 52, 44), light + 0.1))
        canvas.limb([knee, ankle], 12, 9, trousers)
        canvas.limb([hips, knee], 17, 12, trousers)

    def _profile(self, canvas: Canvas, pose: Pose, neck: Point) -> None:
        # Local frame of the head: right is forward, up is the crown; mirrored for an actor who faces left.
        side, looks = pose.facing, self.looks
        tilt = (pose.lean * 0.75 if abs(pose.lean) < 1.2 else pose.lean) + pose.nod
        canvas.limb([neck, (neck[0] + side * math.sin(tilt) * 8, neck[1] - math.cos(tilt) * 8)], 9, 9, looks.skin)
        up = pose.lean if abs(pose.lean) >= 1.2 else tilt * 0.6
        head = canvas.at(
            (neck[0] + side * math.sin(up) * NECK, neck[1] - math.cos(up) * NECK), side * tilt, flip=side < 0
        )
        if looks.long_hair:
            head.limb([(-6, -2), (-10, 14)], 13, 8, looks.hair)
        head.ellipse((0, 0), 11.5, 13.5, shade(looks.skin, 0.85))
        head.ellipse((0, 0), 10.7, 12.7, looks.skin)
        head.polygon([(9.5, -3), (14.5, 3), (9.5, 4.5)], looks.skin)
        head.polygon([(11, -6), (9, -13), (0, -16), (-10, -12), (-13, -2), (-10, 8), (-5, 7), (-3, -4)], looks.hair)
        head.ellipse((-2.5, 2), 2.2, 3.2, shade(looks.skin, 0.82))
        head.ellipse((6.6, -2.5), 2.4, 1.9, (250, 250, 250))
        head.ellipse((7.6, -2.3), 1.4, 1.7, (40, 30, 30))
        head.stroke([(4.8, -5.9), (9.6, -5.9)], 1.2, shade(looks.hair, 0.8))
        head.stroke([(6, 7.6), (10, 7)], 1.3, (165, 75, 70))

    def _front(self, canvas: Canvas, pose: Pose) -> None:
        looks, x, hips = self.looks, pose.x, FLOOR - pose.hips
        if looks.long_hair:
            canvas.limb([(x, hips - TORSO - 18), (x, hips - TORSO + 4)], 29, 26, looks.hair)
        for side in (-1, 1):
            ankle = (x + side * 8, FLOOR - 5)
            canvas.limb([ankle, (x + side * 11, FLOOR - 2)], 8, 7, (70, 52, 44))
            canvas.limb([(x + side * 6, hips), (x + side * 7, hips + THIGH), ankle], 17, 9, looks.trousers)
        canvas.limb([(x, hips - 2), (x, hips - TORSO + 8)], 24, 32, looks.shirt)
        canvas.limb([(x, hips - TORSO), (x, hips - TORSO - 8)], 10, 10, shade(looks.skin, 0.92))
        head = canvas.at((x, hips - TORSO - NECK), pose.nod * 0.2)
        head.ellipse((0, 0), 11.8, 13.5, shade(looks.skin, 0.85))
        head.ellipse((0, 0), 11, 12.7, looks.skin)
        head.polygon(
            [(-12, 0), (-12.5, -8), (-7, -15), (0, -17), (7, -15), (12.5, -8), (12, 0), (8, -7), (-8, -7)], looks.hair
        )
        for side in (-1, 1):
            head.ellipse((side * 4.5, -1), 2.5, 1.9, (250, 250, 250))
            head.ellipse((side * 4.5, -0.8), 1.5, 1.6, (40, 30, 30))
            head.stroke([(side * 2.5, -4.4), (side * 6.8, -4.4)], 1.1, shade(looks.hair, 0.8))
        head.stroke([(0, 1), (-1.2, 4)], 1.0, shade(looks.skin, 0.7))
        head.stroke([(-3.5, 7.5), (0, 8.4), (3.5, 7.5)], 1.3, (165, 75, 70))
