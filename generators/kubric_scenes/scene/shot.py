"""How a camera looks at things, wherever they are: from how high, through which lens, how near."""

import math
from dataclasses import dataclass

import numpy as np

from twinset.generators.kubric_scenes.scene.camera import FILLED
from twinset.generators.kubric_scenes.scene.look import Look

SENSOR_WIDTH = 36.0  # millimetres
FOCAL_LENGTH = 80.0  # millimetres: from afar, so that sizes can be compared
ELEVATION = (26.0, 36.0)  # degrees: high enough to see where things stand, low enough to see what they are
STEEPER, STEEPEST = 4.0, 52.0  # degrees more for each further attempt, and at most
FOCAL_LENGTHS = (45.0, 90.0)  # of varied cameras, likewise what follows
ELEVATIONS = (20.0, 44.0)
FILLS = (0.56, 0.82)
NEARER = 0.06  # more of the least fill for each further try, so that nothing is too small
ASIDE = 0.08  # half pictures to the left or right: farther off, "in front" would be to one side
BORDER = 0.92  # of half a picture: as far down as what a camera sees may be moved
FLATTER = 0.32  # of half the angle of view: rays to the upper part of what is seen are flatter by up to this much


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
    filled = rng.uniform(min(FILLS[0] + NEARER * attempt, FILLS[1]), FILLS[1])
    aside = float(rng.uniform(-ASIDE, ASIDE)), float(rng.uniform(-0.3, 1.0) * (BORDER - filled))
    return Shot(float(focal_length), math.radians(elevation), float(filled), aside)
