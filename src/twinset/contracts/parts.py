"""The contracts that filters keep, and what every part has: isolation, version, what it says of records left out.

A filter is a subclass of `Filter` (its settings) whose `open` gives a `CaptionFilter`, `FrameFilter` or `PairFilter`.
`twinset.shards.contracts` has those of sources.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeVar

from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.errors import TwinsetError, in_words
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Drop, Frame, Verdict
from twinset.contracts.source import FilterSettings, Need, PlacedSettings, check_places

Isolation = Literal["thread", "process"]
EXAMPLES = 20  # records left out that are named

#: What the engine itself rejects samples of any source for.
ENGINE_REASONS = {
    "duplicate": "another sample has the same images and captions; that of the smallest source identity stays",
    "too-large": "a side of an image is longer than its file format holds",
}


class LeftOut(Counter[str]):
    """Records of a source that its plan left out, counted by reason; the first twenty are kept with their place."""

    def __init__(self) -> None:
        super().__init__()
        self.examples: list[tuple[str, str]] = []

    def add(self, reason: str, place: str) -> None:
        """Count one record. place: where it stands, such as ``captions.tsv line 12``."""
        self[reason] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append((reason, place))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A stage waits for people. missing: decisions that are still to be made, of those ``needed``."""

    missing: int
    needed: int


class Component(ABC):
    """What generators and filters have.

    version: raised when bytes or verdicts change. isolation: ``process`` when its libraries need one of their own
    (Blender, dlib, spaCy). libraries: distributions whose version can change the bytes. micro_batch: samples that one
    pass of its network makes, 0 without one; threads: of the network's library; the runtime class names both, since
    they decide a sample's last bits. passes: micro-batches that `Generator.make` is given at a time, more than one
    where it works on the next while the last is encoded.
    """

    version: ClassVar[int]
    isolation: ClassVar[Isolation] = "thread"
    libraries: ClassVar[tuple[str, ...]] = ()
    micro_batch: int = 0
    passes: int = 1
    threads: int = 1

    def device(self) -> str | None:
        """``cpu`` or the GPU's model name where results depend on the machine; None where they do not."""
        return None

    def weights(self) -> Mapping[str, str]:
        """Digests of the weights that it works with, by name."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        """The same with its network as it is loaded, but another micro-batch."""
        other = copy.copy(self)
        other.micro_batch = micro_batch
        return other


class OutOfMemory(Exception):
    """Raised by `Generator.make` when a pass of its network does not fit: the shard starts again with smaller ones."""


class CaptionFilter(Component):
    """Judges captions before anything is decoded: narrows both lists, or drops the candidate."""

    @abstractmethod
    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop: ...


class FrameFilter(Component):
    """Judges one image, once, however many samples share it."""

    @abstractmethod
    def __call__(self, frames: Sequence[Frame]) -> Sequence[Verdict]: ...


class PairFilter(Component):
    """Judges a whole pair."""

    @abstractmethod
    def __call__(self, samples: Sequence[Pair]) -> Sequence[Verdict]: ...


AnyFilter = CaptionFilter | FrameFilter | PairFilter


class Filter(FilterSettings, ABC):
    """Settings of a filter that can be opened."""

    @abstractmethod
    def open(self) -> AnyFilter:
        """The filter. Import heavy libraries there, not where the settings stand."""

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`; ``key`` is such as ``subsets.eq-sd.filters.0``."""
        check_places(self, key, needs)


T = TypeVar("T")


class BrokenContract(AssertionError):
    """A part does what the engine does not expect; the message says what, and what to correct."""


def expect(kept: bool, problem: str) -> None:
    """Raise `BrokenContract` where something is not kept."""
    if not kept:
        raise BrokenContract(problem)


def called(what: str, call: Callable[[], T]) -> T:
    """What a part gives; an error that no user of it could read is a broken contract."""
    try:
        return call()
    except TwinsetError:
        raise
    except Exception as error:
        remedy = "correct it, or raise WrongUse that names the input and the remedy"
        raise BrokenContract(f"{what} raises {in_words(error)}; {remedy}") from error


def check_settings(settings: PlacedSettings) -> None:
    """Settings survive the way to a worker, and each reason is explained."""
    travelled = type(settings).model_validate(settings.model_dump(mode="json"))
    expect(travelled == settings, "settings change on the way through JSON; use types that pydantic writes and reads")
    for reason in (one for one, meaning in settings.meanings.items() if not str(meaning).strip()):
        expect(False, f"reason {reason!r} of {type(settings).__name__}.reasons has no meaning")
