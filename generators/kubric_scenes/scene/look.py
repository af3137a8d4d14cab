"""How much scenes vary besides what their captions say. Nothing heavy is imported here: recipes are read with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field

from twinset.contracts.source import Settings

if TYPE_CHECKING:
    import numpy as np

Material = Literal["gravel", "wood", "tiles", "cloth", "grass"]
MATERIALS: tuple[Material, ...] = get_args(Material)
FRONT_TURN = 55.0  # degrees that a thing known by one side is turned away from the viewer at most


class Look(Settings):
    """What varies from pair to pair, and is the same in a pair's two images.

    grounds: materials, of which each pair has one; none for a plain floor in a muted colour. light: ``varied`` is sun
    and sky, hard or soft, high or low; ``soft`` one mild light. camera: ``varied`` in height, lens, distance and aim;
    ``steady`` from afar and above. bystanders: the most objects that no caption names. turns: ``free`` turns
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
