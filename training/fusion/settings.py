"""The settings of a fusion encoder's training: optimiser as FIBER's released recipe, negatives as METER's (EqBen C)."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from twinset.training.losses.names import HARD, MARGIN, NEGATIVES, NEIGHBOURS
from twinset.training.runs.settings import RunSettings

BATCH, PART = 1024, 8  # examples of a step and, as on one of FIBER's GPUs, of a pass
WEIGHT = 0.5  # β of the released command; the paper chooses from 0.2, 0.5 and 1


class FusionSettings(RunSettings):
    """What `training.fusion.train.train_fusion` trains, on what and how.

    Attributes:
        model: ``blip-itm:FOLDER``, ``vilt:FOLDER`` or ``flava:FOLDER``, as evaluation names it.
        neighbours_by: encoder by whose features images are similar, such as ``open_clip:ViT-B-32:openai``; None: the
            model's own image tower.
        neighbours: of an image, whose texts the matching head scores once. negatives: of an example in a step; hard:
            those of them that are its best neighbours, and count as close; the others are random.
        objective: ``match``: each pair matches or not (FIBER). ``rank``: the own text among those of the negatives
            (METER).
        regulariser: EqSim in the paper's form or as released. regulariser_weight: β. margin: α.
        batch, accumulate: parts of 8 examples, where no number of parts is given. The loss is the mean of the parts'.
        lr: peak learning rate. warmup: share of the steps of linear warm-up to it; then linear to 0.
        lr_times: factor of the rate of heads and cross-modal layers.
        validation: twins, by whose group score the best weights are chosen; without any, the last are the best.
    """

    neighbours_by: str | None = None
    neighbours: PositiveInt = NEIGHBOURS
    negatives: PositiveInt = NEGATIVES
    hard: NonNegativeInt = HARD
    objective: Literal["match", "rank"] = "match"
    regulariser: Literal["eqsim", "eqsim-released"] | None = None
    regulariser_weight: float = Field(default=0, ge=0, allow_inf_nan=False)
    margin: float = Field(default=MARGIN, ge=0, allow_inf_nan=False)
    batch: int = Field(default=BATCH, ge=2)
    epochs: PositiveInt = 10
    lr: float = Field(default=2e-5, gt=0, allow_inf_nan=False)
    lr_times: float = Field(default=5, gt=0, allow_inf_nan=False)
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    seed: int = Field(default=0, ge=0, lt=1 << 63)

    @model_validator(mode="before")
    @classmethod
    def _published(cls, given: Any) -> Any:
        if isinstance(given, dict):
            batch = str(given.get("batch", BATCH))
            parts = int(batch) // math.gcd(int(batch), PART) if batch.isdecimal() and int(batch) else 1
            given = {"accumulate": parts, **given}
            if given.get("regulariser"):
                given = {"regulariser_weight": WEIGHT, **given}
        return given

    @model_validator(mode="after")
    def _fit_together(self) -> FusionSettings:
        if self.hard > min(self.negatives, self.neighbours):
            raise ValueError(f"hard: {self.hard} of {self.negatives} negatives and {self.neighbours} neighbours")
        if self.regulariser is None and self.regulariser_weight:
            raise ValueError("regulariser_weight: names no regulariser to weigh; set regulariser too")
        return self
