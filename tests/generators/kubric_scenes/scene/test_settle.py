"""Things fall, come to rest, and lie where a second simulation finds them too."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.generators.kubric_scenes.tiny_assets import files, pack
from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.scene.parts import Placement
from twinset.generators.kubric_scenes.scene.settle import FLOOR, settle

BOX = Placement("box", 0.5, (0.0, 0.0, 0.25), (1.0, 0.0, 0.0, 0.0))  # 1 × 0.7 × 0.5 units, standing on the floor
CAN = Placement("can", 0.5, (0.1, 0.05, 1.2), (1.0, 0.0, 0.0, 0.0))  # 0.8 units high


def test_a_thing_dropped_on_another_lies_on_it(shelf: AssetShelf) -> None:
    settled = settle(shelf, [BOX], CAN)
    assert (settled.still, settled.touching) == (True, {0})
    assert settled.placement.position == pytest.approx((0.1, 0.05, 0.5 + 0.4), abs=0.01)
    assert abs(settled.placement.quaternion[0]) == pytest.approx(1.0, abs=0.01)


def test_a_thing_dropped_beside_another_lies_on_the_floor(shelf: AssetShelf) -> None:
    settled = settle(shelf, [BOX], replace(CAN, position=(2.0, 0.0, 0.6)))
    assert (settled.still, settled.touching) == (True, {FLOOR})
    assert settled.placement.position == pytest.approx((2.0, 0.0, 0.4), abs=0.01)


def test_a_thing_dropped_over_an_edge_falls_off(shelf: AssetShelf) -> None:
    settled = settle(shelf, [BOX], replace(CAN, position=(0.0, 0.5, 1.2)))
    assert 0 not in settled.touching
    assert settled.placement.position[2] < 0.5


def test_a_bridge_rests_on_both_its_piers(shelf: AssetShelf) -> None:
    piers = [replace(CAN, position=(x, 0.0, 0.4)) for x in (-0.35, 0.35)]
    settled = settle(shelf, piers, replace(BOX, position=(0.0, 0.0, 1.1)))
    assert (settled.still, settled.touching) == (True, {0, 1})


def test_a_ball_does_not_roll_away(shelf: AssetShelf) -> None:
    settled = settle(shelf, [BOX], Placement("ball", 0.4, (0.0, 0.0, 0.9), (1.0, 0.0, 0.0, 0.0)))
    assert (settled.still, settled.touching) == (True, {0})


def test_a_thing_that_the_simulator_cannot_load(shelf: AssetShelf, manifest: Path) -> None:
    pack(manifest.parent / "can.tar.gz", files("can") | {"object.urdf": b"<robot/>"})
    with pytest.raises(WrongUse, match=r"can\.tar\.gz: PyBullet cannot load its URDF"):
        settle(shelf, [BOX], CAN)
    assert settle(shelf, [], replace(BOX, position=(0.0, 0.0, 0.5))).still


def test_most_things_come_to_rest(shelf: AssetShelf) -> None:
    tilted = (math.cos(0.4), math.sin(0.4), 0.0, 0.0)
    drops = [
        Placement(asset, 0.4, (0.1, y, z), tilted)
        for asset in ("ball", "box", "can")
        for y in (0.0, 0.2, 0.4)
        for z in (0.95, 2.0)
    ]
    assert all(settle(shelf, [BOX], drop).still for drop in drops)


AGAIN = """
import sys
from pathlib import Path
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.scene.settle import settle
from tests.generators.kubric_scenes.scene.test_settle import BOX, CAN
print(repr(settle(AssetShelf(sys.argv[1], Path(sys.argv[2])), [BOX], CAN)))
"""


def test_the_same_drop_ends_at_the_same_floats(shelf: AssetShelf, tmp_path: Path) -> None:
    first = settle(shelf, [BOX], CAN)
    settle(shelf, [], replace(CAN, position=(0.0, 0.0, 1.0)))
    assert settle(shelf, [BOX], CAN) == first
    command = [sys.executable, "-c", AGAIN, shelf.manifest, str(tmp_path / "other")]
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.strip() == repr(first)
