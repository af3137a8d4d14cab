"""What the plays are written with: actors, places of the room, whole-body poses and hand positions."""

from __future__ import annotations

from generators.builtin.miniature.figure import Hand, Looks, Pose
from generators.builtin.miniature.things import CHAIR_SEAT, SOFA_SEAT, TABLE_TOP

BLUE = Looks((52, 96, 176), (60, 62, 74), (66, 42, 26))
RED = Looks((196, 62, 70), (44, 66, 112), (34, 26, 26), (198, 142, 104), long_hair=True)
GREEN = Looks((76, 146, 84), (122, 96, 66), (150, 96, 40))

BASE = 212.0  # picture row that furniture stands on
TOP = BASE - TABLE_TOP  # picture row of a table's top

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


def stand(x: float, facing: int, near: Hand = REST, far: Hand = REST_FAR, lean: float = 0.0, nod: float = 0.0) -> Pose:
    """Upright on the floor."""
    if facing == 0:
        near, far = (HANGING if hand in (REST, REST_FAR) else hand for hand in (near, far))
    return Pose(x, facing, near=near, far=far, lean=lean, nod=nod)


def sit(
    x: float,
    facing: int,
    near: Hand = (22.0, -32.0),
    far: Hand = (18.0, -32.0),
    lean: float = 0.0,
    nod: float = 0.0,
    seat: float = CHAIR_SEAT,
) -> Pose:
    """On a seat, feet on the floor in front of it."""
    return Pose(x, facing, hips=seat + 8, near=near, far=far, lean=lean, nod=nod, near_foot=(30, 0), far_foot=(24, 0))


def lie(x: float, facing: int, near: Hand = (30.0, 8.0), far: Hand = (32.0, 10.0), seat: float = SOFA_SEAT) -> Pose:
    """On one's back, legs stretched out forwards."""
    return Pose(
        x, facing, hips=seat + 10, near=near, far=far, lean=-1.5, near_foot=(60, seat + 2), far_foot=(58, seat + 4)
    )


def stoop(x: float, facing: int, near: Hand = GROUND, far: Hand = GROUND) -> Pose:
    """Bent over with bent knees, hands near the floor."""
    return Pose(x, facing, hips=46, lean=1.05, nod=-0.2, near=near, far=far, near_foot=(9, 0), far_foot=(-9, 0))


def squat(x: float, facing: int, near: Hand = AHEAD, far: Hand = AHEAD) -> Pose:
    """Deep in the knees, trunk upright."""
    return Pose(x, facing, hips=30, lean=0.3, near=near, far=far, near_foot=(12, 0), far_foot=(2, 0))
