"""The settings of detectors; the defaults are those of BiVLC's released code."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from twinset.evaluation.blind_probes.detectors import IMAGE_EPOCHS, RATE, TEXT_EPOCHS
from twinset.training.runs.settings import MOST_AT_ONCE

MOST_BATCH = 65_536  # inputs of a pass, all of which are held
MOST_EPOCHS = 10_000
#: Settings of how features are computed; the runtime class of the features has them.
EXECUTION = frozenset({"device", "threads", "encode_batch"})


class DetectorSettings(BaseModel):
    """What `training.detectors.train.train_detectors` trains, on what and how.

    Attributes:
        model: a dual encoder, as ``twinset eval run --model`` names it.
        data: what twinset built, ``DIR`` or ``DIR:SUBSET``: pairs of which the second half is synthetic (TROHN-Img,
            BiVLC), or text pairs, whose negative captions are.
        held_out: share of the groups that the best epoch is chosen by; as many again test the detectors.
        rate: learning rate of Adam. Released: 1e-3; the paper (appendix E) says 1e-6.
        text_epochs, image_epochs: passes over the captions, over the images.
        seed: of the held-out groups, the first weights and the order.
        device, threads, encode_batch: how the encoder runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "open_clip:ViT-B-32:openai"
    data: tuple[str, ...] = Field(min_length=1)
    held_out: float = Field(default=0.1, gt=0, lt=0.5)
    rate: float = Field(default=RATE, gt=0, allow_inf_nan=False)
    text_epochs: int = Field(default=TEXT_EPOCHS, ge=1, le=MOST_EPOCHS)
    image_epochs: int = Field(default=IMAGE_EPOCHS, ge=1, le=MOST_EPOCHS)
    seed: int = Field(default=42, ge=0, lt=1 << 63)
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=0, ge=0, le=MOST_AT_ONCE)
    encode_batch: int = Field(default=32, ge=1, le=MOST_BATCH)

    def facts(self) -> dict[str, Any]:
        """What decides the detectors, as JSON."""
        return self.model_dump(mode="json", exclude=set(EXECUTION))
