"""The settings of detectors; the defaults are those of BiVLC's released code."""

from typing import Literal

from pydantic import Field, PositiveInt

from twinset.training.runs.settings import RunSettings, Share


class DetectorSettings(RunSettings):
    """Detectors of synthetic captions and images, on the embeddings of a frozen dual encoder (BiVLC, 5).

    Attributes:
        model: a dual encoder, as ``twinset eval run --model`` names it; it stays as it is.
        data: pairs of which the second half is synthetic (TROHN-Img, BiVLC), or text pairs, whose negative captions
            are.
        validation: the same; without any, the last weights are the best.
        epochs, image_epochs: passes over the captions, over the images.
        lr: of Adam. Released: 1e-3; the paper (appendix E) says 1e-6.
    """

    model: str = "open_clip:ViT-B-32:openai"
    batch: int = Field(default=400, ge=2)
    epochs: PositiveInt = 10
    image_epochs: PositiveInt = 1
    lr: float = Field(default=1e-3, gt=0, allow_inf_nan=False)
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    weight_decay: float = Field(default=0, ge=0, allow_inf_nan=False)
    #: Features are read as in evaluation, and all of a batch at once.
    transform: Literal["evaluation"] = "evaluation"
    precision: Literal["float32"] = "float32"
    accumulate: Literal[1] = 1
    workers: Literal[0] = 0
    seed: int = Field(default=42, ge=0, lt=1 << 63)
