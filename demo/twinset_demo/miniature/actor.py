"""The actor: poses, and a jointed figure that takes them by simple inverse kinematics, from the side or the front."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from twinset_demo.canvas import Canvas, Colour, Point, shade
from twinset_demo.miniature.room import CHAIR_SEAT, SOFA_SEAT

FLOOR = 216.0  # picture row that feet stand on
NECK, TORSO, UPPER_ARM, FOREARM, THIGH, SHIN = 15.0, 45.0, 23.0, 22.0, 31.0, 31.0
SHOES = (70, 52, 44)
STANDING = 64.0  # height of the hips above the floor

Hand = Point  # where a hand is: (forward, up) from the shoulder, in pixels
REST: Hand = (5.0, -42.0)
REST_FAR: Hand = (-3.0, -42.0)
HANGING: Hand = (7.0, -44.3)  # from the front: outward, down
LAP: Hand = (22.0, -32.0)  # of one who sits
LAP_FAR: Hand = (18.0, -32.0)
GROUND: Hand = (-3.0, -44.0)  # of one who stoops
CHEST: Hand = (22.0, -15.0)
HIGH: Hand = (10.0, 42.0)
AHEAD: Hand = (42.0, -4.0)
CARRYING: Hand = (24.0, -22.0)


@dataclass(frozen=True, slots=True)
class Pose:
    """A whole pose, in pixels and radians.

    Args:
        x: Where the hips are, from the left.
        facing: 1 right, -1 left, 0 the viewer.
        hips: Their height above the floor.
        lean: Of the trunk, forwards.
        nod: Of the head, downwards, on top of the trunk's lean.
        near: Hand as (forward, up) from the shoulder; from the front (outward, up). Likewise ``far``.
        near_foot: (forward, up) from the point of the floor under the hips. Likewise ``far_foot``.
    """

    x: float
    facing: int
    hips: float = STANDING
    lean: float = 0.0
    nod: float = 0.0
    near: Hand = REST
    far: Hand = REST_FAR
    near_foot: Point = (5.0, 0.0)
    far_foot: Point = (-5.0, 0.0)

    def trunk(self, up: float) -> Point:
        """The point of the trunk that is ``up`` pixels above the hips, in the picture."""
        return self.x + (self.facing or 1) * math.sin(self.lean) * up, FLOOR - self.hips - math.cos(self.lean) * up

    def shoulder(self) -> Point:
        """Where the arms begin, in the picture."""
        return self.trunk(TORSO - 4)

    def hand(self, which: str) -> Point:
        """Where a hand (``near``, ``far``, or ``both``: between the two) is in the picture, within the arm's reach."""
        if which == "both":
            near, far = self.hand("near"), self.hand("far")
            return (near[0] + far[0]) / 2, (near[1] + far[1]) / 2
        forward, up = self.near if which == "near" else self.far
        x, y = self.shoulder()
        side = self.facing
        if side == 0:
            side = 1 if which == "near" else -1
            x += 13 * side
        reach = min(1.0, (UPPER_ARM + FOREARM - 0.5) / max(1e-6, math.hypot(forward, up)))
        return x + side * forward * reach, y - up * reach

    def reaching(self, near: Point | None = None, far: Point | None = None) -> Pose:
        """This pose with hands at points of the picture (side view only)."""
        x, y = self.shoulder()
        moved = {name: (self.facing * (p[0] - x), y - p[1]) for name, p in (("near", near), ("far", far)) if p}
        return replace(self, **moved)  # type: ignore[arg-type]


def between(a: Pose, b: Pose, share: float) -> Pose:
    """The pose on the way from ``a`` (share 0) to ``b`` (share 1); the body turns around half way."""

    def mixed(before: Any, after: Any) -> Any:
        if isinstance(before, tuple):
            return tuple(map(mixed, before, after))
        return before + (after - before) * share

    values = {field.name: mixed(getattr(a, field.name), getattr(b, field.name)) for field in fields(Pose)}
    return Pose(**values | {"facing": b.facing if share >= 0.5 else a.facing})


def stand(x: float, facing: int, near: Hand = REST, far: Hand = REST_FAR, lean: float = 0.0, nod: float = 0.0) -> Pose:
    """Upright on the floor."""
    if facing == 0:
        near, far = (HANGING if hand in (REST, REST_FAR) else hand for hand in (near, far))
    return Pose(x, facing, near=near, far=far, lean=lean, nod=nod)


def sit(x: float, facing: int, near: Hand = LAP, far: Hand = LAP_FAR, seat: float = CHAIR_SEAT, **bent: float) -> Pose:
    """On a seat, feet on the floor in front of it. bent: ``lean`` and ``nod``."""
    return Pose(x, facing, hips=seat + 8, near=near, far=far, near_foot=(30, 0), far_foot=(24, 0), **bent)


def lie(x: float, facing: int) -> Pose:
    """On one's back, legs stretched out forwards."""
    return Pose(x, facing, SOFA_SEAT + 10, -1.5, 0.0, (30, 8), (32, 10), (60, SOFA_SEAT + 2), (58, SOFA_SEAT + 4))


def stoop(x: float, facing: int) -> Pose:
    """Bent over with bent knees, hands near the floor."""
    return Pose(x, facing, hips=46, lean=1.05, nod=-0.2, near=GROUND, far=GROUND, near_foot=(9, 0), far_foot=(-9, 0))


def squat(x: float, facing: int, near: Hand = AHEAD, far: Hand = AHEAD) -> Pose:
    """Deep in the knees, trunk upright."""
    return Pose(x, facing, hips=30, lean=0.3, near=near, far=far, near_foot=(12, 0), far_foot=(2, 0))


def joint(root: Point, end: Point, first: float, second: float, bend: float) -> tuple[Point, Point]:
    """Middle joint and true end of a two-bone limb that reaches for ``end``; ``bend`` (1 or -1) picks the side."""
    dx, dy = end[0] - root[0], end[1] - root[1]
    distance = min(max(math.hypot(dx, dy), abs(first - second) + 0.1), first + second - 0.1)
    along = math.atan2(dy, dx)
    corner = math.acos((first**2 + distance**2 - second**2) / (2 * first * distance))
    middle = (root[0] + first * math.cos(along + bend * corner), root[1] + first * math.sin(along + bend * corner))
    return middle, (root[0] + distance * math.cos(along), root[1] + distance * math.sin(along))


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor: what captions call them, and the colours they are painted in.

    Paints a pose in two layers, so that what is held lies between body and near arm.
    """

    name: str
    shirt: Colour
    trousers: Colour
    hair: Colour
    skin: Colour = (224, 172, 134)
    long_hair: bool = False

    def body(self, canvas: Canvas, pose: Pose) -> None:
        """All but the near arm (from the front: all but both arms)."""
        if pose.facing == 0:
            self._front(canvas, pose)
            return
        self._arm(canvas, pose, "far", 0.8)
        self._leg(canvas, pose, pose.far_foot, 0.75)
        self._leg(canvas, pose, pose.near_foot, 1.0)
        neck = pose.trunk(TORSO)
        canvas.limb([pose.trunk(0), neck], 19, 23, self.shirt)
        self._profile(canvas, pose, neck)

    def arms(self, canvas: Canvas, pose: Pose) -> None:
        """The near arm, or both arms of an actor who faces the viewer."""
        for which in ("near",) if pose.facing else ("far", "near"):
            self._arm(canvas, pose, which, 0.93)

    def _arm(self, canvas: Canvas, pose: Pose, which: str, light: float) -> None:
        root = pose.shoulder()
        if pose.facing == 0:
            side = 1 if which == "near" else -1
            root, bend = (root[0] + 13 * side, root[1] + 1), float(-side if pose.hand(which)[1] > root[1] else side)
        else:
            bend = float(pose.facing)
        elbow, hand = joint(root, pose.hand(which), UPPER_ARM, FOREARM, bend)
        skin = shade(self.skin, light)
        canvas.limb([elbow, hand], 8, 6, skin)
        canvas.limb([root, elbow], 11, 9, shade(self.shirt, light))
        canvas.ellipse(hand, 4.6, 4.6, shade(skin, 0.85))
        canvas.ellipse(hand, 3.8, 3.8, skin)

    def _leg(self, canvas: Canvas, pose: Pose, foot: Point, light: float) -> None:
        side = pose.facing
        knee, ankle = joint(pose.trunk(0), (pose.x + side * foot[0], FLOOR - 4 - foot[1]), THIGH, SHIN, -float(side))
        trousers = shade(self.trousers, light)
        flat = foot[1] < 25  # a raised foot points along the shin
        toe = (ankle[0] + side * 9, ankle[1] + 1.5) if flat else (ankle[0] + side * 3, ankle[1] - 9)
        canvas.limb([ankle, toe], 7, 6, shade(SHOES, light + 0.1))
        canvas.limb([knee, ankle], 12, 9, trousers)
        canvas.limb([pose.trunk(0), knee], 17, 12, trousers)

    def _profile(self, canvas: Canvas, pose: Pose, neck: Point) -> None:
        # Local frame of the head: right is forward, up is the crown; mirrored for an actor who faces left.
        side = pose.facing
        tilt = (pose.lean * 0.75 if abs(pose.lean) < 1.2 else pose.lean) + pose.nod
        canvas.limb([neck, (neck[0] + side * math.sin(tilt) * 8, neck[1] - math.cos(tilt) * 8)], 9, 9, self.skin)
        up = pose.lean if abs(pose.lean) >= 1.2 else tilt * 0.6
        middle = neck[0] + side * math.sin(up) * NECK, neck[1] - math.cos(up) * NECK
        head = canvas.at(middle, side * tilt, flip=side < 0)
        if self.long_hair:
            head.limb([(-6, -2), (-10, 14)], 13, 8, self.hair)
        head.ellipse((0, 0), 11.5, 13.5, shade(self.skin, 0.85))
        head.ellipse((0, 0), 10.7, 12.7, self.skin)
        head.polygon([(9.5, -3), (14.5, 3), (9.5, 4.5)], self.skin)
        head.polygon([(11, -6), (9, -13), (0, -16), (-10, -12), (-13, -2), (-10, 8), (-5, 7), (-3, -4)], self.hair)
        head.ellipse((-2.5, 2), 2.2, 3.2, shade(self.skin, 0.82))
        head.ellipse((6.6, -2.5), 2.4, 1.9, (250, 250, 250))
        head.ellipse((7.6, -2.3), 1.4, 1.7, (40, 30, 30))
        head.stroke([(4.8, -5.9), (9.6, -5.9)], 1.2, shade(self.hair, 0.8))
        head.stroke([(6, 7.6), (10, 7)], 1.3, (165, 75, 70))

    def _front(self, canvas: Canvas, pose: Pose) -> None:
        x, hips = pose.x, FLOOR - pose.hips
        if self.long_hair:
            canvas.limb([(x, hips - TORSO - 18), (x, hips - TORSO + 4)], 29, 26, self.hair)
        for side in (-1, 1):
            ankle = (x + side * 8, FLOOR - 5)
            canvas.limb([ankle, (x + side * 11, FLOOR - 2)], 8, 7, SHOES)
            canvas.limb([(x + side * 6, hips), (x + side * 7, hips + THIGH), ankle], 17, 9, self.trousers)
        canvas.limb([(x, hips - 2), (x, hips - TORSO + 8)], 24, 32, self.shirt)
        canvas.limb([(x, hips - TORSO), (x, hips - TORSO - 8)], 10, 10, shade(self.skin, 0.92))
        head = canvas.at((x, hips - TORSO - NECK), pose.nod * 0.2)
        head.ellipse((0, 0), 11.8, 13.5, shade(self.skin, 0.85))
        head.ellipse((0, 0), 11, 12.7, self.skin)
        hair = [(-12, 0), (-12.5, -8), (-7, -15), (0, -17), (7, -15), (12.5, -8), (12, 0), (8, -7), (-8, -7)]
        head.polygon(hair, self.hair)
        for side in (-1, 1):
            head.ellipse((side * 4.5, -1), 2.5, 1.9, (250, 250, 250))
            head.ellipse((side * 4.5, -0.8), 1.5, 1.6, (40, 30, 30))
            head.stroke([(side * 2.5, -4.4), (side * 6.8, -4.4)], 1.1, shade(self.hair, 0.8))
        head.stroke([(0, 1), (-1.2, 4)], 1.0, shade(self.skin, 0.7))
        head.stroke([(-3.5, 7.5), (0, 8.4), (3.5, 7.5)], 1.3, (165, 75, 70))


BLUE = Actor("man in blue shirt", (52, 96, 176), (60, 62, 74), (66, 42, 26))
RED = Actor("woman in red shirt", (196, 62, 70), (44, 66, 112), (34, 26, 26), (198, 142, 104), long_hair=True)
GREEN = Actor("man in green shirt", (76, 146, 84), (122, 96, 66), (150, 96, 40))
