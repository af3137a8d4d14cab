"""Where the objects of a planned pair stand, and how they are seen: one try of many, drawn from a random stream.

What lies on another object gets there by falling until it lies still (PyBullet, through Kubric).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets import AssetShelf
from twinset.generators.kubric_scenes.captions import Drawn, NamedAsset
from twinset.generators.kubric_scenes.geometry import (
    Colour,
    Model,
    Placement,
    Points,
    Refuted,
    Vector,
    View,
    frame_things,
    model_of,
    paint,
    vector,
)
from twinset.generators.kubric_scenes.kubric_import import load_kubric, load_simulator

GAP = (0.25, 0.5)  # scene units beside each other: what is nearer takes light from each other
TURN = 18.0  # degrees that a thing may be turned away from how it faces the viewer
COUNTED_TURN = 40.0
LOOSE = 0.35  # of how far apart counted things must be: how far each may stand from its place in a square of them
CLEARED = 1.15  # of the height of what stands in front is cleared by rays to the foot of what stands behind
FLATTER = math.radians(4)  # rays in the upper part of a picture are flatter than its middle one by up to this much

ELEVATION = (26.0, 36.0)  # degrees: high enough to see where things stand, low enough to see what they are
STEEPER, STEEPEST = 4.0, 52.0  # degrees more for each further attempt, and at most
#: Muted, so that no thing vanishes before it: linear RGB.
FLOORS: tuple[Colour, ...] = (
    (0.42, 0.40, 0.37),
    (0.36, 0.38, 0.40),
    (0.45, 0.38, 0.29),
    (0.33, 0.37, 0.33),
    (0.48, 0.44, 0.40),
    (0.30, 0.30, 0.33),
)

SEEN_OVER = 0.5  # of the height of counted things is cleared by rays to those behind them
DROP = 0.02  # scene units above what a thing will lie on
GRID = 64  # cells along the longer side of the carrying thing
LEVEL = 0.03  # scene units: heights that differ by less carry together
NEARLY_BEST = 0.9  # spots that carry at least this share of what the best one does

STEPS_A_SECOND = 240
SECONDS = 3.0
STILL_STEPS = 48  # so long it must not have moved; a thing about to tip over stands still for a moment too
STILL_SPEED = 0.01  # scene units/s
STILL_TURN = 0.03  # radians/s
UPWARDS = 0.3  # least vertical part of a contact's normal for "rests on"; less is leaning against

# Things must lie where they fall, neither slide nor bounce nor roll away: rubber on rubber, in thick air.
DYNAMICS = {
    "lateralFriction": 1.0,
    "rollingFriction": 0.02,
    "spinningFriction": 0.02,
    "restitution": 0.0,
    "linearDamping": 0.1,
    "angularDamping": 0.3,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """A thing that stands in a scene. carried: whether it lies on the subject, else on the floor."""

    named: NamedAsset
    model: Model
    placement: Placement
    carried: bool = False

    @property
    def points(self) -> Points:
        """(n, 3) corners of its mesh in the scene."""
        return self.model.placed(self.placement)


#: What stands in an image: objects first, the subject (if there is one) last.
Things = tuple[Standing, ...]


def compose(drawn: Drawn, shelf: AssetShelf, rng: np.random.Generator, attempt: int = 0) -> tuple[View, Things, Things]:
    """One try at a scene: how both images are seen, and what stands in each.

    attempt: of the same pair, from 0; each looks down a little more steeply, so that less is hidden.
    """
    elevation = math.radians(min(STEEPEST, rng.uniform(*ELEVATION) + STEEPER * attempt))
    if drawn.aspect == "counting":
        things0, things1 = _count(drawn, model_of(drawn.object0, shelf), rng, elevation - FLATTER)
    else:
        things0, things1 = _relate(drawn, shelf, rng, elevation - FLATTER)
    points = np.concatenate([standing.points for standing in {id(t): t for t in (*things0, *things1)}.values()])
    return frame_things(points, elevation, FLOORS[int(rng.integers(len(FLOORS)))]), things0, things1


def _turn(most: float, rng: np.random.Generator) -> float:
    """An angle around the vertical axis, radians. most: degrees, away from how a thing faces the viewer."""
    return math.radians(rng.uniform(-most, most))


def _relate(drawn: Drawn, shelf: AssetShelf, rng: np.random.Generator, flattest: float) -> tuple[Things, Things]:
    """The subject on the floor, and each image's object where its relation to the subject says.

    flattest: elevation of the flattest rays to the camera that matter, radians.
    """
    assert drawn.subject is not None
    model = model_of(drawn.subject, shelf)
    subject = Standing(drawn.subject, model, model.on_floor(0.0, 0.0, _turn(TURN, rng)))
    turned = _turn(TURN, rng)  # both members of an attribute set are turned alike
    gap, spot = float(rng.uniform(*GAP)), float(rng.uniform())

    # Both members of a set stand where the larger one has room.
    models = [model_of(named, shelf) for named in (drawn.object0, drawn.object1)]
    bounds = [np.ptp(model.placed(model.on_floor(0.0, 0.0, turned)), axis=0) for model in models]
    room = vector(np.max(bounds, axis=0))

    def stand(named: NamedAsset, model: Model, relation: str) -> Standing:
        if relation == "on-top":
            x, y, height = resting_place(subject.points, subject.model.faces, room[:2], spot)
            dropped = model.on_floor(x, y, turned, height + DROP)
            return Standing(named, model, *settle(shelf, subject.placement, dropped))
        x, y = _beside(room, relation, gap, subject, flattest)
        return Standing(named, model, model.on_floor(x, y, turned))

    first = stand(drawn.object0, models[0], drawn.relation0)
    return (first, subject), (stand(drawn.object1, models[1], drawn.relation1), subject)


def _beside(room: Vector, relation: str, gap: float, subject: Standing, flattest: float) -> tuple[float, float]:
    """A spot (x, y) on the floor, as far away as the bounds of both ask for.

    room: width, depth and height of what stands there.
    """
    width, depth, height = room
    low, high = subject.points.min(axis=0), subject.points.max(axis=0)
    x, y = (low[:2] + high[:2]) / 2
    if relation in ("left", "right"):
        return float(low[0] - gap - width / 2 if relation == "left" else high[0] + gap + width / 2), float(y)
    # What stands in front must leave the other to be seen, down to its foot, by a camera that looks down on both.
    front = float(height if relation == "in-front" else high[2])
    away = depth / 2 + gap + CLEARED * front / math.tan(flattest)
    return float(x), float(low[1] - away if relation == "in-front" else high[1] + away)


def _count(drawn: Drawn, model: Model, rng: np.random.Generator, flattest: float) -> tuple[Things, Things]:
    """As many as the larger count, of which the other image shows the first ones: the rest stay where they are."""
    width, depth, height = np.ptp(model.points, axis=0)
    radius = math.hypot(width, depth) / 2
    most = max(drawn.count0, drawn.count1)
    # Rows must be far enough apart that a thing in front leaves those behind to be seen.
    rows = depth + SEEN_OVER * height / math.tan(flattest) + 0.15
    apart = np.array([2.1 * min(radius, 0.62 * max(width, depth)), rows])
    places = _scatter(most, apart, rng)
    placements = [model.on_floor(float(x), float(y), _turn(COUNTED_TURN, rng)) for x, y in places]
    standings = tuple(Standing(drawn.object0, model, placement) for placement in placements)
    return standings[: drawn.count0], standings[: drawn.count1]


def _scatter(most: int, apart: Points, rng: np.random.Generator) -> Points:
    """``most`` places (x, y) in cells of a square, any two at least ``apart`` in X or in Y."""
    side = math.ceil(math.sqrt(most))
    cells = np.stack(np.divmod(rng.permutation(side * side)[:most], side), axis=1)
    return np.asarray(apart * (cells * (1 + LOOSE) + rng.uniform(0, LOOSE, (most, 2))))


def resting_place(
    carrier: Points, faces: NDArray[np.int32], footprint: tuple[float, float], spot: float
) -> tuple[float, float, float]:
    """A spot (x, y) over which a thing is let go, and the height Z at which it would first touch.

    carrier: (n, 3) corners of the carrying mesh in the scene; footprint: width (X) and depth (Y) of what is laid down.
    Spots are judged by how much of the footprint lies at the height at which the thing would touch. spot: which of the
    best is taken, 0 to below 1; the same for two things of one footprint is the same place.
    """
    low, high = carrier.min(axis=0), carrier.max(axis=0)
    cell = float((high - low)[:2].max()) / GRID
    heights = _from_above(carrier, faces, low, cell)
    window = [max(1, round(length / cell)) for length in (footprint[1], footprint[0])]
    # Nothing beyond the carrier carries, and a thing may stick out: windows run over its edges.
    padded = np.pad(heights, [(length // 2, length - length // 2) for length in window], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, window)[: heights.shape[0], : heights.shape[1]]
    touching = windows.max(axis=(2, 3))
    carried = (windows > touching[..., None, None] - LEVEL).mean(axis=(2, 3))
    # Its middle must be carried, or it tips over.
    carried[heights < touching - LEVEL] = 0
    rows, columns = np.nonzero(carried >= NEARLY_BEST * carried.max())
    chosen = int(spot * len(rows))
    row, column = int(rows[chosen]), int(columns[chosen])
    return (float(low[0]) + (column + 0.5) * cell, float(low[1]) + (row + 0.5) * cell, float(touching[row, column]))


def _from_above(points: Points, faces: NDArray[np.int32], low: Points, cell: float) -> NDArray[np.float32]:
    """Heights of what a mesh shows from above, a cell each; rows along Y, columns along X; -inf beside it."""
    cells = (points[:, :2] - low[:2]) / cell
    columns, rows = np.maximum(np.ceil(cells.max(axis=0)).astype(int), 1)
    tops = points[:, 2][faces].max(axis=1)
    seen = paint(cells[faces], np.argsort(tops, kind="stable"), (rows, columns))
    return np.where(seen < 0, -np.inf, tops[seen]).astype(np.float32)


def settle(shelf: AssetShelf, carrier: Placement, dropped: Placement) -> tuple[Placement, bool]:
    """Let a thing fall from where it is onto the floor (Z = 0) and a carrier, which does not move.

    It is simulated until it has lain still for 0.2 s, for 3 s at most. The same arguments give the same floats.
    Collisions are with the asset's collision geometry, each part of it taken as convex, as Bullet does.

    Returns:
        Where it came to rest, and whether it lies on the carrier alone.

    Raises:
        Refuted: it had not come to rest when the simulation ended.
    """
    kb, module = load_kubric(), load_simulator()
    scene = kb.Scene(gravity=(0.0, 0.0, -9.81), step_rate=STEPS_A_SECOND)
    view = module.PyBullet(scene)
    bullet = view._physics_client
    try:
        scene += kb.Cube(name="floor", scale=(100.0, 100.0, 1.0), position=(0.0, 0.0, -1.0), static=True)
        bodies = []
        for placement in (carrier, dropped):
            traits = {"scale": placement.scale, "position": placement.position, "quaternion": placement.quaternion}
            prop = shelf.create(placement.asset, static=placement is carrier, **traits)
            try:
                scene += prop
            except module.pb.error as error:
                raise shelf.unusable(placement.asset, f"PyBullet cannot load its URDF ({error})") from error
            bodies.append(prop.linked_objects[view])
        for body in range(bullet.getNumBodies()):
            bullet.changeDynamics(bullet.getBodyUniqueId(body), -1, **DYNAMICS)
        # Kubric allows no slop at all, so that contacts open and close for ever: 60 of 72 things came to rest, now 72.
        bullet.setPhysicsEngineParameter(contactSlop=0.001)
        placement, touching = _fall(bullet, bodies[1], dropped)
        return placement, touching == {bodies[0]}
    finally:
        # A later scene starts from nothing then: body ids and contact order are part of the result.
        bullet.disconnect()
        bullet._client = -1  # or its __del__, whenever that runs, disconnects a later client of the same number


def _fall(bullet: Any, body: int, dropped: Placement) -> tuple[Placement, set[int]]:
    """Where a body came to rest, and the bodies that it rests on."""
    still = 0
    touching: set[int] = set()
    for _ in range(int(SECONDS * STEPS_A_SECOND)):
        bullet.stepSimulation()
        speed, turn = (math.hypot(*velocity) for velocity in bullet.getBaseVelocity(body))
        if not (speed <= STILL_SPEED and turn <= STILL_TURN):  # a mass that is no number makes speeds that are none
            still = 0
            touching.clear()
            continue
        still += 1
        # A contact: [2] the other body, [7] normal towards `body`, [9] force.
        contacts = bullet.getContactPoints(bodyA=body)
        touching |= {contact[2] for contact in contacts if contact[9] > 0 and contact[7][2] > UPWARDS}
        if still >= STILL_STEPS:
            position, (x, y, z, w) = bullet.getBasePositionAndOrientation(body)
            return replace(dropped, position=vector(position), quaternion=(w, x, y, z)), touching
    raise Refuted("never-still", f"{dropped.asset} was still moving after {SECONDS:g} s")
