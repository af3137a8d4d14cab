"""Engines within sources: what makes the samples is chosen by a setting, and has settings of its own."""

import copy
from abc import abstractmethod
from collections.abc import Collection, Mapping
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, ClassVar, Generic, Protocol, Self, TypeVar

from pydantic import Field

from twinset.contracts.canonical import digest
from twinset.contracts.errors import naming
from twinset.contracts.parts import Isolation
from twinset.contracts.source import Need, Place, PlacedSettings, SourceSettings
from twinset.models.device import OnDevice, check_installed, load_within_memory
from twinset.models.files import ModelFiles
from twinset.shards.contracts import Source
from twinset.shards.metering import Tally


class Engine(Protocol):
    """An engine at work. It may have a ``version``, ``isolation`` and ``libraries``, as `contracts.parts.Part`.
    micro_batch: what one pass of its network makes; for servers, requests that are handed over at a time.
    """

    micro_batch: int = 0
    threads: int = 1

    def device(self) -> str | None:
        """As `contracts.parts.Part.runs_on`."""
        return None

    def weights(self) -> Mapping[str, str]:
        """As of `contracts.parts.Part`."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        """The same engine, with its network as it is loaded."""
        smaller = copy.copy(self)
        smaller.micro_batch = micro_batch
        return smaller


class EngineSettings(PlacedSettings):
    """Settings of an engine, light to import.

    worker: ``MODULE:CLASS`` of the engine, which imports heavy libraries. metered: whether the logs of shards say how
    many answers and tokens they took.
    """

    worker: ClassVar[str]
    metered: ClassVar[bool] = False

    def open(self) -> Any:
        """The engine at work."""
        module, _, name = self.worker.partition(":")
        return getattr(import_module(module), name)(self)

    def cost(self, spent: Tally) -> float | None:
        """What answers cost, in the unit of the recipe's prices; None where it names none."""
        return None


class LocalSettings(OnDevice, EngineSettings):
    """Settings of an engine with a network of transformers in this process.

    model: a folder, or an id of the hub in the local cache. device, threads: as `OnDevice`. micro_batch: what one pass
    makes; halved for a shard when memory runs out.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=8, ge=1, le=1024)

    execution = (*OnDevice.execution, "micro_batch")

    @abstractmethod
    def files(self) -> ModelFiles:
        """The model's files; raises `ModelMissing`, or `WrongUse` where they are of another kind."""

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs:
            with naming(f"{key}.model"):
                files = self.files()
            if "media" in needs:
                check_installed(key, files.libraries, self.extra)


L = TypeVar("L", bound=LocalSettings)


class LocalEngine(Engine, Generic[L]):
    """An engine with a network of transformers that is loaded once. name: of its files in `weights`."""

    name: ClassVar[str]
    # Torch's threads and seeds are its process's, and some networks keep what one pass tells the next.
    isolation: ClassVar[Isolation] = "process"

    def __init__(self, settings: L) -> None:
        self.settings = settings
        self.micro_batch, self.threads = settings.micro_batch, settings.threads

    def device(self) -> str:
        return self.settings.device_name("source.engine.device")

    def weights(self) -> Mapping[str, str]:
        return {self.name: self.settings.files().digest()}

    def with_micro_batch(self, micro_batch: int) -> Self:
        self.loaded  # noqa: B018 - the copy shares it
        return super().with_micro_batch(micro_batch)

    @cached_property
    def loaded(self) -> Any:
        """What `load` gives; raises `BuildFailed` where it does not fit into memory."""
        return load_within_memory(self.settings.model, self.load)

    @abstractmethod
    def load(self) -> Any:
        """The network with what goes with it."""


class EngineSource(Source):
    """A source whose work is done where its engine runs. engine: its settings; subclasses declare which."""

    engine: EngineSettings

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        super().check_inputs(key, needs)
        self.engine.check_inputs(f"{key}.engine", needs)

    def check_device(self, key: str) -> None:
        self.engine.check_device(f"{key}.engine")

    @cached_property
    def worker(self) -> Any:
        """The engine at work; what it loads belongs to one worker."""
        return self.engine.open()

    @property
    def isolation(self) -> Isolation:  # type: ignore[override]  # the engine's, where it has one
        return getattr(self.worker, "isolation", "thread")

    @property
    def libraries(self) -> tuple[str, ...]:  # type: ignore[override]
        return getattr(self.worker, "libraries", ())

    @property
    def threads(self) -> int:
        """Of the engine's network."""
        return int(self.worker.threads)

    def runs_on(self) -> str | None:
        device: str | None = self.worker.device()
        return device

    def weights(self) -> Mapping[str, str]:
        version = getattr(self.worker, "version", None)
        own = {"engine": digest([self.engine.kind, version])} if version else {}
        return {**own, **self.worker.weights()}

    def batch_size(self) -> int:
        return int(self.worker.micro_batch)

    def with_micro_batch(self, micro_batch: int) -> Self:
        smaller = self.model_copy()
        smaller.__dict__["worker"] = self.worker.with_micro_batch(micro_batch)
        return smaller


def metered_engine(source: SourceSettings) -> EngineSettings | None:
    """The engine of a source whose answers are counted; None where it has none."""
    return source.engine if isinstance(source, EngineSource) and source.engine.metered else None
