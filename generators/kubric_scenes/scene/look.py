"""How much scenes vary besides what their captions say, and the camera that this gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from pydantic import Field

from generators.kubric_scenes.scene.camera import FILLED
from generators.kubric_scenes.scene.parts import Material
from manifests.source import Settings

MATERIALS: tuple[Material, ...] = get_args(Material)
FRONT_TURN = 55.0  # degrees that a thing known by one side is turned away from the viewer at most

SENSOR_WIDTH = 36.0  # millimetres
FOCAL_LENGTH = 80.0  # millimetres: from afar, so that sizes can be compared
ELEVATION = (26.0, 36.0)  # degrees: high enough to see where things stand, low enough to see what they are
STEEPER, STEEPEST = 4.0, 52.0  # degrees more for each further attempt, and at most
FOCAL_LENGTHS = (45.0, 90.0)  # of varied cameras, likewise what follows
ELEVATIONS = (20.0, 44.0)
FILLS = (0.56, 0.82)
ASIDE = 0.08  # half pictures to the left or right: farther off, "in front" would be to one side
BORDER = 0.92  # of half a picture: as far down as what a camera sees may be moved
FLATTER = 0.32  # of half the angle of view: rays to the upper part of what is seen are flatter by up to this much


class Look(Settings):
    """What varies from pair to pair, and is the same in a pair's two images.

    grounds: materials, of which each pair has one; none for a plain floor in a muted colour. light: ``varied`` is sun
    and sky, hard or soft, high or low; ``soft`` one mild light. camera: ``varied`` in height, lens, distance and aim;
    ``steady`` from afar and above. bystanders: at most so many objects that no caption names. turns: ``free`` turns
    things around the vertical axis; ``facing`` only a little away from how they face the viewer.
    """

    grounds: tuple[Material, ...] = MATERIALS
    light: Literal["varied", "soft"] = "varied"
    camera: Literal["varied", "steady"] = "varied"
    bystanders: int = Field(default=2, ge=0, le=4)
    turns: Literal["free", "facing"] = "free"

    def of_one_pair(self, rng: np.random.Generator) -> Look:
        """This look with one ground and one number of bystanders, for all tries at a pair.

        Were they sampled for each try, what makes tries fail would be rarer than the rest.
        """
        ground = (self.grounds[int(rng.integers(len(self.grounds)))],) if self.grounds else ()
        return self.model_copy(update={"grounds": ground, "bystanders": int(rng.integers(self.bystanders + 1))})

    def turn(self, front: bool, usual: float, rng: np.random.Generator) -> float:
        """An angle around the vertical axis, radians.

        Args:
            front: whether the thing must show the side that it is known by.
            usual: how far things are turned that face the viewer, degrees.
        """
        most = usual if self.turns == "facing" else FRONT_TURN if front else 180.0
        return math.radians(rng.uniform(-most, most))


PLAIN = Look(grounds=(), light="soft", camera="steady", bystanders=0, turns="facing")


@dataclass(frozen=True, slots=True)
class Shot:
    """How a camera looks at things, wherever they are.

    elevation: radians. filled, aside: as `frame_things` has them.
    """

    focal_length: float
    elevation: float
    filled: float
    aside: tuple[float, float]

    @property
    def flattest(self) -> float:
        """Elevation of the flattest rays that matter, radians."""
        return self.elevation - FLATTER * math.atan(SENSOR_WIDTH / 2 / self.focal_length)


def sample_shot(look: Look, attempt: int, rng: np.random.Generator) -> Shot:
    """A camera. attempt: of the same pair, from 0; each looks down a little more steeply, so that less is hidden."""
    steeper = STEEPER * attempt
    if look.camera == "steady":
        elevation = min(STEEPEST, rng.uniform(*ELEVATION) + steeper)
        return Shot(FOCAL_LENGTH, math.radians(elevation), FILLED, (0.0, 0.0))
    # Even in the width of what is seen, not in millimetres.
    focal_length = 1 / rng.uniform(1 / FOCAL_LENGTHS[1], 1 / FOCAL_LENGTHS[0])
    elevation = min(STEEPEST, rng.uniform(*ELEVATIONS) + steeper)
    filled = rng.uniform(*FILLS)
    aside = float(rng.uniform(-ASIDE, ASIDE)), float(rng.uniform(-0.3, 1.0) * (BORDER - filled))
    return Shot(float(focal_length), math.radians(elevation), float(filled), aside)
