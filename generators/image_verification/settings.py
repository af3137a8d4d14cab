"""The settings of engines that answer questions about images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from generators.language_models.settings import OpenAI
from manifests.errors import WrongUse
from manifests.source import Need, Place, PlacedSettings

if TYPE_CHECKING:
    from generators.image_verification.engine import VisualQuestionAnswering

REMEDY = "pip install 'twinset[models]'"


class EngineSettings(PlacedSettings, ABC):
    """What the settings of all engines can do."""

    @property
    def shards_at_a_time(self) -> int:
        """As `manifests.source.SourceSettings.shards_at_a_time`."""
        return 1

    @abstractmethod
    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `shards.contracts.Source.check_inputs`; ``key`` is such as ``subsets.verified.source.engine``."""

    def check_device(self, key: str) -> None:
        """As `shards.contracts.Source.check_device`."""

    @abstractmethod
    def open(self) -> VisualQuestionAnswering:
        """The engine. Heavy libraries are imported there."""


class Transformers(EngineSettings):
    """A BLIP or ViLT model for visual question answering in this process, by Hugging Face's transformers.

    model: a folder, or an id of the hub whose files are in the local cache, such as ``Salesforce/blip-vqa-base``.
    device: ``gpu`` is the first CUDA device. threads: torch's, of each process. micro_batch: questions a pass, all of
    one image; halved for a shard when memory runs out.
    """

    kind: Literal["transformers"]
    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=1, ge=1, le=1024)
    micro_batch: int = Field(default=16, ge=1, le=1024)

    execution = ("device", "threads", "micro_batch")

    @property
    def shards_at_a_time(self) -> int:
        """One on a GPU, which its shards would share; else one a core."""
        return 1 if self.device == "gpu" else 0

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `EngineSettings.check_inputs`: the files of the model, and what loads them."""
        from generators.image_verification.model_files import find_model

        if "models" not in needs:
            return
        try:
            find_model(self.model)
        except WrongUse as error:
            raise WrongUse(f"{key}.model: {error}") from error
        for library in ("torch", "transformers") if "media" in needs else ():
            if find_spec(library) is None:
                raise WrongUse(f"{key}: {library} is not installed; the model is loaded with it: {REMEDY}")

    def check_device(self, key: str) -> None:
        """As `EngineSettings.check_device`."""
        if self.device == "gpu":
            try:
                from shards.models.device import check_gpu
            except ImportError as error:
                raise WrongUse(f"{key}.device: {error}; {REMEDY}") from error
            check_gpu(f"{key}.device")

    def open(self) -> VisualQuestionAnswering:
        """As `EngineSettings.open`."""
        from generators.image_verification.local_model import LocalModel

        return LocalModel(self)


class SmallWorld(EngineSettings):
    """The checker of twinset's small world, for images that its small text-to-image model drew. It has no settings."""

    kind: Literal["small-world"]

    @property
    def shards_at_a_time(self) -> int:
        """One a core."""
        return 0

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """It needs nothing."""

    def open(self) -> VisualQuestionAnswering:
        """As `EngineSettings.open`."""
        from generators.image_verification.small_world.engine import SmallWorldChecker

        return SmallWorldChecker()


class Server(OpenAI):
    """A vision-language model on a server that speaks OpenAI's API, with images as data URLs.

    Answers, retries and costs are those of `generators.language_models.settings.OpenAI`. image_tokens: the most that an
    image may cost, to stay below ``max_cost``.
    """

    temperature: Literal[0] = 0
    top_p: Literal[1] = 1
    max_tokens: int = Field(default=1, ge=1, le=100)
    answer_format: Literal["text"] = "text"
    image_tokens: int = Field(default=4096, ge=1)

    execution = (*OpenAI.execution, "image_tokens")  # type: ignore[assignment]

    def open(self) -> VisualQuestionAnswering:  # type: ignore[override]
        """As `EngineSettings.open`."""
        from generators.image_verification.server_model import VisionServer

        return VisionServer(self)
