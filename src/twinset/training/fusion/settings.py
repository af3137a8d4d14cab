"""The settings of a fusion encoder's training: optimiser as FIBER's released recipe, negatives as METER's (EqBen C)."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from twinset.training.losses.names import HARD, NEGATIVES, NEIGHBOURS, Regulariser, fusion_form
from twinset.training.runs.settings import RegularisedSettings, Share

BATCH, PART = 1024, 8  # examples of a step and, as on one of FIBER's GPUs, of a pass


class FusionSettings(RegularisedSettings):
    """A fusion encoder, BLIP, ViLT or FLAVA, on negatives that it mines among its data (EqBen C).

    Attributes:
        model: ``blip-itm:FOLDER``, ``vilt:FOLDER`` or ``flava:FOLDER``, as evaluation names it.
        nearest: images of an image, by the features of the model's own image tower; the matching head scores all of
            their texts once, before the first step. negatives: of an example in a step; hard: those of them with the
            best texts, which count as close; the others are random.
        objective: ``match``: each pair matches or not (FIBER). ``rank``: the own text among those of the negatives
            (METER).
        image_size: in pixels, of ViLT of the shorter side; None: that of the model's processor. 288 in EqBen (C).
        batch, accumulate: parts of 8 examples, where no number of parts is given. The loss is the mean of the parts'.
        lr: peak learning rate. warmup: share of the steps of linear warm-up to it; then linear to 0.
        lr_times: factor of the rate of heads and cross-modal layers.
        validation: twins, by whose group score the best weights are chosen; without any, the last are the best.
    """

    nearest: PositiveInt = NEIGHBOURS
    negatives: PositiveInt = NEGATIVES
    hard: NonNegativeInt = HARD
    objective: Literal["match", "rank"] = "match"
    image_size: int | None = Field(default=None, ge=16, le=4096)
    batch: int = Field(default=BATCH, ge=2)
    epochs: PositiveInt = 10
    lr: float = Field(default=2e-5, gt=0, allow_inf_nan=False)
    lr_times: float = Field(default=5, gt=0, allow_inf_nan=False)
    betas: tuple[Share, Share] = (0.9, 0.98)
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    seed: int = Field(default=0, ge=0, lt=1 << 63)

    @classmethod
    def find_regulariser(cls, name: str) -> Regulariser:
        """Its form on scores of a matching head; raises as `fusion_form`."""
        return fusion_form(name)

    @model_validator(mode="before")
    @classmethod
    def _published(cls, given: Any) -> Any:
        if isinstance(given, dict):
            batch = str(given.get("batch", BATCH))
            parts = int(batch) // math.gcd(int(batch), PART) if batch.isdecimal() and int(batch) else 1
            given = {"accumulate": parts, **given}
        return given

    @model_validator(mode="after")
    def _fit_together(self) -> FusionSettings:
        if self.hard > self.negatives:
            raise ValueError(f"hard: {self.hard} of {self.negatives} negatives")
        return self
