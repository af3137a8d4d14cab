"""Poses of an actor: standing, sitting, lying, stooping and squatting, and what lies between two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from generators.builtin.canvas import Point
from generators.builtin.miniature.things import CHAIR_SEAT, SOFA_SEAT

FLOOR = 216.0  # picture row that feet stand on
TORSO, UPPER_ARM, FOREARM = 45.0, 23.0, 22.0
STANDING = 64.0  # height of the hips above the floor

Hand = Point  # where a hand is: (forward, up) from the shoulder, in pixels
REST: Hand = (5.0, -42.0)
REST_FAR: Hand = (-3.0, -42.0)
HANGING: Hand = (7.0, -44.3)  # from the front: outward, down
GROUND: Hand = (-3.0, -44.0)  # of one who stoops
CHEST: Hand = (22.0, -15.0)
MOUTH: Hand = (19.0, 8.0)
HIGH: Hand = (10.0, 42.0)
AHEAD: Hand = (42.0, -4.0)
READING: Hand = (24.0, -8.0)
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


def sit(
    x: float,
    facing: int,
    near: Hand = (22, -32),
    far: Hand = (18, -32),
    lean: float = 0,
    nod: float = 0,
    seat: float = CHAIR_SEAT,
) -> Pose:
    """On a seat, feet on the floor in front of it."""
    return Pose(x, facing, hips=seat + 8, near=near, far=far, lean=lean, nod=nod, near_foot=(30, 0), far_foot=(24, 0))


def lie(x: float, facing: int) -> Pose:
    """On one's back, legs stretched out forwards."""
    return Pose(x, facing, SOFA_SEAT + 10, -1.5, 0.0, (30, 8), (32, 10), (60, SOFA_SEAT + 2), (58, SOFA_SEAT + 4))


def stoop(x: float, facing: int) -> Pose:
    """Bent over with bent knees, hands near the floor."""
    return Pose(x, facing, hips=46, lean=1.05, nod=-0.2, near=GROUND, far=GROUND, near_foot=(9, 0), far_foot=(-9, 0))


def squat(x: float, facing: int, near: Hand = AHEAD, far: Hand = AHEAD) -> Pose:
    """Deep in the knees, trunk upright."""
    return Pose(x, facing, hips=30, lean=0.3, near=near, far=far, near_foot=(12, 0), far_foot=(2, 0))
