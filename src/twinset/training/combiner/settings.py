"""The settings of a Combiner's training; the defaults are those of GeneCIS's released code (5.1, appendix E)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from twinset.training.runs.settings import EncoderSettings, Share

CIRR = "cirr="  # before a folder: training or validation on CIRR, as in the paper


class CombinerSettings(EncoderSettings):
    """A Combiner on triplets, and its encoder where that is not frozen (GeneCIS, 5.1).

    Attributes:
        model, weights: the encoder; the paper's tables are of RN50x4 and ViT-B-16.
        data: triplets with a reference, a target and a condition; ``cirr=DIR``: CIRR's training split (Tables 2 and 4).
        validation: other triplets, or ``cirr=DIR``, the paper's choice; without any, the last weights are the best.
        frozen: tower of the encoder that stays as it is (Table 5). ``none``: both are trained, as in the paper;
            ``both``: the Combiner alone is, on features that are computed once.
        epochs: passes over the data; 0: the paper's 28,000 steps, or the released code's 6 epochs where that is
            fewer.
        steps: optimiser steps instead of epochs, where given.
        projection, hidden: widths of the Combiner's layers. dropout: share of activations.
        temperature: τ of the loss.
        lr, betas, eps, weight_decay: of AdamW, for encoder and Combiner alike; the rate falls from epoch to epoch.
        transform: of training images; with ``frozen`` both they are read as in evaluation.
    """

    model: str = "RN50x4"
    batch: int = Field(default=256, ge=2)
    epochs: int = Field(default=0, ge=0)
    steps: PositiveInt | None = None
    frozen: Literal["none", "image", "text", "both"] = "none"
    projection: PositiveInt = 2560
    hidden: PositiveInt = 5120
    dropout: float = Field(default=0.5, ge=0, lt=1)
    temperature: float = Field(default=0.01, gt=0, allow_inf_nan=False)
    lr: float = Field(default=1e-6, gt=0, allow_inf_nan=False)
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0, ge=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0, lt=1 << 63)

    @model_validator(mode="after")
    def _fit_together(self) -> CombinerSettings:
        trained, validated = (
            [place for place in places if place.startswith(CIRR)] for places in (self.data, self.validation)
        )
        if len(trained) > 1 or (trained and self.split):
            raise ValueError(f"data: {trained[0]} has one split to train on; name it once, and without split")
        if validated and (len(self.validation) > 1 or self.validation_split):
            raise ValueError(
                f"validation: {validated[0]} is a benchmark of one split; name it alone, and without split"
            )
        return self
