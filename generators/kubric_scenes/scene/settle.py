"""Laying a thing on another: where it is let go, and how it falls until it lies still (PyBullet, through Kubric)."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.scene.camera import paint
from twinset.generators.kubric_scenes.scene.parts import Placement, Points, Refuted
from twinset.generators.kubric_scenes.studio.kubric_import import load_kubric, load_simulator

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
            thing = shelf.create(placement.asset, static=placement is carrier, **traits)
            try:
                scene += thing
            except module.pb.error as error:
                raise shelf.unusable(placement.asset, f"PyBullet cannot load its URDF ({error})") from error
            bodies.append(thing.linked_objects[view])
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
            return replace(dropped, position=position, quaternion=(w, x, y, z)), touching
    raise Refuted("never-still", f"{dropped.asset} was still moving after {SECONDS:g} s")
