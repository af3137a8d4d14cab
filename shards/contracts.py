"""The contracts that sources and filters keep; the engine knows nothing else of them.

A source is a subclass of `Source` (its settings) that names its `Generator` (its work). A filter is a subclass of
`Filter` (its settings) whose `open` gives a `CaptionFilter`, `FrameFilter` or `PairFilter`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pkgutil import resolve_name
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import pyarrow as pa

from twinset.manifests.candidate import Candidate, CaptionedCandidate, Identified
from twinset.manifests.canonical import identity_of, sample_key
from twinset.manifests.errors import TwinsetError, WrongUse, in_words
from twinset.manifests.licences.terms import Terms
from twinset.manifests.recipe import Encoding
from twinset.manifests.source import FilterSettings, Need, PlacedSettings, SourceSettings
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.inputs import check_places
from twinset.shards.kinds.kind import Sample
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Drop, Frame, Rejected, TableRows, Verdict
from twinset.shards.media.media_folder import Media
from twinset.shards.storage.store import Store

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


def _no_stage(name: str) -> FinishedStage:
    raise WrongUse(f"stage {name!r} is read where no stage is at hand; build it first")


@dataclass(frozen=True, slots=True)
class Context:
    """What a generator knows of the stage that it works for.

    name: of the stage, the first part of its samples' keys. split: that its candidates belong to. seed: of the recipe.
    earlier: opens a stage that the source reads, by the value of its setting. out: the dataset that the stage is made
    in; None where it is opened outside of one. encoding: how its images are stored.
    """

    name: str
    split: str = "test"
    seed: int = 0
    earlier: Callable[[str], FinishedStage] = field(default=_no_stage)
    out: Store | None = None
    encoding: Encoding = field(default_factory=Encoding)


class Source(SourceSettings, ABC):
    """Settings of a source that can be opened.

    generator: ``MODULE:NAME`` of its `Generator`, a callable that takes these settings and a `Context`. A name, so that
    settings never import what works with them. A source can also define `open` itself.
    """

    generator: ClassVar[str] = ""

    def open(self, context: Context) -> Generator[Any]:
        """The generator of a stage. Import heavy libraries there, not where the settings stand."""
        if not self.generator:
            raise WrongUse(f"source {self.kind!r}: its class names no generator; set generator = 'MODULE:NAME'")
        return cast(Generator[Any], resolve_name(self.generator)(self, context))

    def media_files(self) -> Media | None:
        """Where its media are looked for; None where they are not in a folder of this machine."""
        return None

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """Raise `WrongUse` before any work when an input is absent; the arguments as of `check_places`."""
        check_places(self, key, needs)


S = TypeVar("S", bound=SourceSettings)


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


class Generator(Component, Generic[S]):
    """A source at work for one stage.

    candidate: type of its planned records. columns: of a ``table``, the columns of its rows. numbers: of samples,
    scores that have columns in the rows besides those of their kind.
    """

    candidate: type[Candidate]
    columns: pa.Schema | None = None
    numbers: tuple[str, ...] = ()

    def __init__(self, source: S, context: Context) -> None:
        self.source = source
        self.name, self.split, self.seed = context.name, context.split, context.seed
        self.context = context
        self.excluded = LeftOut()

    def identified(
        self, *identity: str | int | float, group: str = "", terms: Terms | None = None, shows: Sequence[Terms] = ()
    ) -> Identified:
        """What every candidate has. identity: tells it from all others of the source, wherever its record stands.

        group: its key where empty. terms, shows: those of its record, and of rows of earlier stages
        (`manifests.licences.terms.StatedTerms.settled`)."""
        key, own = sample_key(self.name, *identity), identity_of(*identity)
        found = self.source.settled((self.name, *identity), terms, shows, self.source.makes != "table").columns
        return {"key": key, "identity": own, "group": group or key, "split": self.split, **found}

    @abstractmethod
    def inputs(self) -> str:
        """Digest of all that `plan` reads, such as the sha256 of the annotation file."""

    @abstractmethod
    def plan(self) -> Iterator[Candidate]:
        """Candidates in a fixed order, groups contiguous; reads annotations only, and streams.

        What it leaves out is counted in `excluded`, which is empty when it begins.
        """

    def plan_inputs(self) -> str:
        """Digest of what decides only the fields of candidates, such as people's decisions; empty without it.

        When it changes, the stage is planned again, and shards whose candidates are the same stay. It belongs to the
        same moment as the next `plan` and `waiting`, though people decide meanwhile: read such inputs once.
        """
        return ""

    def waiting(self) -> Waiting | None:
        """Which decisions of people are missing; None where none is. Asked after the plan, before shards are made."""
        return None

    def media_names(self, candidate: Candidate) -> tuple[str, ...]:
        """Names of the media that a candidate needs, as `Source.media_files` takes them; none where it cannot say."""
        return candidate.media_names

    def media_urls(self) -> Mapping[str, str]:
        """Where media can be fetched, by name, as far as annotations tell."""
        return {}

    @abstractmethod
    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | TableRows | Rejected]:
        """One result a candidate, in order; a candidate that fails becomes a `Rejected`.

        Candidates of one group come together, and as many groups as fill `passes` micro-batches. Results are encoded
        as they come where no filter judges images.
        """

    def reports(self) -> Mapping[str, bytes]:
        """Files that describe what is planned from, by name, to lie beside the plan."""
        return {}


class StageGenerator(Generator[S]):
    """Plans from the one earlier stage that the source names."""

    @cached_property
    def earlier(self) -> FinishedStage:
        """That stage."""
        (name,) = self.source.reads
        return self.context.earlier(name)

    def inputs(self) -> str:
        return self.earlier.digest


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
