"""The settings of a training run; the defaults are BiVLC's published recipe (Miranda et al. 2024, appendix E)."""

from __future__ import annotations

from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from twinset.training.examples.contracts import Twins
from twinset.training.losses.names import OBJECTIVES
from twinset.training.runs.settings import EncoderSettings, RegularisedSettings, Share

#: Examples of a batch in BiVLC's code: CLIP_COCO's, and that of models which read hard negatives too.
BATCH, BATCH_WITH_NEGATIVES = 400, 200


class ClipSettings(RegularisedSettings, EncoderSettings):
    """A dual encoder of open_clip, on twins and other captioned images, also with hard negatives and EqSim.

    Attributes:
        validation: without any, the last weights are the best.
        objective: which features are compared; it decides what is read of an example.
        batch: 400, or 200 with hard negatives.
        steps: optimiser steps instead of epochs, where given.
        lr: peak learning rate. warmup: steps of linear warm-up to it; then half a cosine to 0.
        betas, eps, weight_decay: of AdamW; no decay on norms, biases and the logit scale.
        transform: BiVLC's code trains with ``evaluation``.
    """

    model: str = "ViT-B-32"
    objective: str = "infonce"
    batch: int = Field(default=BATCH, ge=2)
    epochs: PositiveInt = 10
    steps: PositiveInt | None = None
    lr: float = Field(default=1e-6, gt=0, allow_inf_nan=False)
    betas: tuple[Share, Share] = (0.9, 0.98)
    eps: float = Field(default=1e-6, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    warmup: NonNegativeInt = 50
    seed: int = Field(default=42, ge=0, lt=1 << 63)

    @model_validator(mode="before")
    @classmethod
    def _published(cls, given: Any) -> Any:
        objective = given.get("objective")
        if isinstance(objective, str) and OBJECTIVES.find(objective).negatives:
            given = {"batch": BATCH_WITH_NEGATIVES, **given}
        return given

    @property
    def twins(self) -> Twins:
        """The sides of a pair that are examples. With negatives the sides are each other's: in one batch, the answer of
        each would also be among its wrong answers.
        """
        return "first" if OBJECTIVES.find(self.objective).negatives else "both"
