"""The contracts that sources and filters keep; the engine knows nothing else of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Protocol, runtime_checkable

from manifests.candidate import Candidate, CaptionedCandidate
from shards.kinds.samples import Drop, Frame, Pair, Rejected, Sample, Verdict

Isolation = Literal["thread", "process"]


class Generator(Protocol):
    """A source of samples. Built by `generators.create`.

    version: raised when the bytes it makes change.
    isolation: ``process`` when its libraries must have a process of their own (Blender, dlib).
    candidate: the type of its planned records.
    libraries: distributions whose version can change the pixels.
    excluded: what `plan` left out, by reason; filled while it runs.
    """

    version: ClassVar[int]
    isolation: ClassVar[Isolation]
    candidate: ClassVar[type[Candidate]]
    libraries: ClassVar[tuple[str, ...]]
    excluded: Counter[str]

    def inputs(self) -> str:
        """Digest of all that `plan` reads, such as the sha256 of the annotation file."""
        ...

    def plan(self) -> Iterator[Candidate]:
        """Candidates in a fixed order, groups contiguous; reads annotations only, and streams."""
        ...

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | Rejected]:
        """One result a candidate, in order; a candidate that fails becomes a `Rejected`.

        Candidates of one group come together, and as many groups as it takes to fill a micro-batch (`Batching`).
        """
        ...


@runtime_checkable
class Staged(Protocol):
    """What a generator has besides, if it plans from an earlier stage, such as the scene graphs of captions."""

    def make_earlier(self, root: str, workers: int, told: Callable[[int, int], None] | None = None) -> None:
        """Make the earlier stage below a folder or URL of its own, or go on with what was begun there.

        Called before `plan` and `inputs` where a plan is written; nothing to do where the stage is among the inputs.
        workers: processes. told: called with the numbers of done and of all shards as they are done.
        """
        ...

    def reports(self) -> Mapping[str, bytes]:
        """Files that say what is planned from, by name, to lie beside the plan."""
        ...


class OutOfMemory(Exception):
    """Raised by `Generator.make` when a pass of its network does not fit: the shard starts again with smaller ones."""


@runtime_checkable
class Batching(Protocol):
    """What a generator has besides, if one pass of its network makes several samples.

    threads: of the network's library. micro_batch: samples a pass. Both are part of the runtime class: the last bits of
    a sample depend on how many are made with it. `make` fills up a pass that is short of candidates: which others a
    shard has, and how many, changes no sample.
    """

    threads: int
    micro_batch: int

    def device(self) -> str:
        """``cpu``, or the GPU's model name."""
        ...

    def with_micro_batch(self, micro_batch: int) -> Generator:
        """The same generator with its network as it is loaded, but for another micro-batch."""
        ...


class CaptionFilter(Protocol):
    """Judges captions before anything is decoded: narrows both lists, or drops the candidate."""

    judges: ClassVar[Literal["captions"]]
    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]]
    isolation: ClassVar[Isolation]

    def __call__(self, candidate: CaptionedCandidate) -> CaptionedCandidate | Drop: ...


class FrameFilter(Protocol):
    """Judges one image, once, however many samples share it."""

    judges: ClassVar[Literal["frames"]]
    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]]
    isolation: ClassVar[Isolation]

    def __call__(self, frames: Sequence[Frame]) -> Sequence[Verdict]: ...


class PairFilter(Protocol):
    """Judges a whole pair."""

    judges: ClassVar[Literal["pairs"]]
    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]]
    isolation: ClassVar[Isolation]

    def __call__(self, samples: Sequence[Pair]) -> Sequence[Verdict]: ...
