"""The contract that sources keep; the engine knows nothing else of them. Filters have theirs in `contracts.parts`.

A source is a subclass of `Source` (its settings) that names its `Generator` (its work).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pkgutil import resolve_name
from typing import Any, ClassVar, Generic, TypeVar, cast

import pyarrow as pa

from twinset.contracts.candidate import Candidate, Identified
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.licences.terms import Terms
from twinset.contracts.parts import Component, LeftOut, Waiting
from twinset.contracts.recipe import Encoding
from twinset.contracts.source import Need, SourceSettings, check_places
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import Media
from twinset.shards.storage.store import Store


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
        (`contracts.licences.terms.StatedTerms.settled`)."""
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
