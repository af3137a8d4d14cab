"""Settings of the engine ``images-server``, which draws on a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from twinset.models.image_engine import ImageEngineSettings
from twinset.models.paid_server import PaidServer
from twinset.shards.metering import Tally

OWN = {"model", "prompt", "n", "size", "seed", "response_format"}  # parameters of the engine


class ServedImages(PaidServer, ImageEngineSettings):
    """Pictures drawn on a server that speaks OpenAI's images API (``/v1/images/generations``), such as vLLM-Omni.

    Every picture is kept at once and never asked for again; the folder of answers alone makes the same dataset. There
    they lie as files, named by their sha256.

    model, base_url, api_key_variable, answers, concurrency, timeout, retries, longest_wait: as `PaidServer`.
    size: of the pictures, width x height. plain: leave out of requests what OpenAI's own models do not take, ``seed``
    and ``response_format``. options: further parameters of every request, such as ``{num_inference_steps: 28}``.
    price: of a picture. max_cost: that all pictures of the model may cost, damaged ones too, in the unit of ``price``.
    licence: of what is drawn.
    """

    kind: Literal["images-server"]
    size: str = Field(default="1024x1024", pattern=r"^[1-9]\d{1,3}x[1-9]\d{1,3}$")
    plain: bool = False
    options: Mapping[str, str | int | float | bool] = {}
    price: float = Field(default=0, ge=0)

    execution = (*PaidServer.execution, "price")
    worker = "twinset.models.images_server.engine:ServedPainter"
    title: ClassVar[str] = "an image model on a server"
    reasons: ClassVar[Mapping[str, str]] = {
        "refused": "the server does not accept the prompt or the picture",
        "other-size": "the picture has another size than was asked for",
        "blank": "all pixels of the picture are equal",
    }

    @model_validator(mode="after")
    def _cost_can_be_counted(self) -> ServedImages:
        if self.max_cost is not None and not self.price:
            raise ValueError("max_cost needs price, that of a picture")
        if own := sorted({*self.options} & OWN):
            raise ValueError(f"options: {own[0]} is said by the engine itself; leave it out")
        return self

    def cost(self, spent: Tally) -> float | None:
        return spent.answers * self.price if self.price else None

    def notes(self) -> str:
        given = "".join(f", {name} {value}" for name, value in sorted(self.options.items()))
        return (
            f"* Model: {self.model} on a server{given}. Its weights are not known: the pictures can be made again from "
            "the folder of answers alone.\n"
        )
