"""The contract that sources keep; the engine knows nothing else of them. Filters have theirs in `contracts.parts`.

A source is a subclass of `Source`, whose fields are its settings, or of `RowStage` or `TableStage`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pyarrow as pa
from pydantic import PrivateAttr

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, digest, identity_of, sample_key
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.kind import Sample
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.parts import LeftOut, Part
from twinset.contracts.recipe import Encoding
from twinset.contracts.source import SourceSettings
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import Media
from twinset.shards.storage.store import Store

if TYPE_CHECKING:
    import polars as pl


def _no_stage(name: str) -> FinishedStage:
    raise WrongUse(f"stage {name!r} is read where no stage is at hand; build it first")


@dataclass(frozen=True, slots=True)
class Context:
    """What a source knows of the stage that it works for.

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


class Source(SourceSettings, Part):
    """Plans candidates from its inputs and makes samples of them. Its fields are its settings.

    The engine opens it for a stage; `stage` and `excluded` are there from then on.

    candidate: type of its planned records. row_schema: of a ``table``, the columns of its rows. numbers: of samples,
    scores that have columns in the rows besides those of their kind. passes: micro-batches that `make` is given at a
    time, more than one where it works on the next while the last is encoded.
    """

    candidate: ClassVar[type[Candidate]] = Candidate
    row_schema: ClassVar[pa.Schema | None] = None
    numbers: ClassVar[tuple[str, ...]] = ()
    passes: ClassVar[int] = 1

    _stage: Context | None = PrivateAttr(None)
    _excluded: LeftOut = PrivateAttr(default_factory=LeftOut)

    def open(self, stage: Context) -> Self:
        """This source at work for a stage: a copy, since what it loads belongs to one worker."""
        opened = self.model_copy()
        opened._stage, opened._excluded = stage, LeftOut()
        return opened

    @property
    def stage(self) -> Context:
        """The stage that it works for; raises `WrongUse` before `open`."""
        if self._stage is None:
            raise WrongUse(f"source {self.kind!r} works for no stage yet; use what open(Context(...)) gives")
        return self._stage

    @property
    def excluded(self) -> LeftOut:
        """Records that its plan leaves out, each with reason and place; empty when a plan begins."""
        return self._excluded

    def identified(
        self, *identity: str | int | float, group: str = "", terms: Terms | None = None, shows: Sequence[Terms] = ()
    ) -> dict[str, Any]:
        """What every candidate has. identity: tells it from all others of the source, wherever its record stands.

        group: its key where empty. terms, shows: those of its record, and of rows of earlier stages
        (`contracts.licences.terms.StatedTerms.settled`)."""
        name = self.stage.name
        key, own = sample_key(name, *identity), identity_of(*identity)
        settled = self.settled((name, *identity), terms, shows, self.makes != "table")._asdict()
        return {"key": key, "identity": own, "group": group or key, "split": self.stage.split, **settled}

    def earlier(self) -> FinishedStage:
        """The one earlier stage that it reads."""
        return self._only_earlier

    @cached_property
    def _only_earlier(self) -> FinishedStage:
        (name,) = self.reads
        return self.stage.earlier(name)

    def inputs(self) -> str:
        """Digest of all that `plan` reads, such as the sha256 of the annotation file; by default of earlier stages."""
        if not self.reads:
            raise NotImplementedError(f"{type(self).__name__} has no method inputs")
        digests = [self.stage.earlier(name).digest for name in self.reads]
        return digests[0] if len(digests) == 1 else digest(digests)

    def plan(self) -> Iterator[Candidate]:
        """Candidates in a fixed order, groups contiguous; reads annotations only, and streams.

        What it leaves out is counted in `excluded`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method plan")

    def plan_inputs(self) -> str:
        """Digest of what decides only the fields of candidates, such as people's decisions; empty without it.

        When it changes, the stage is planned again, and shards whose candidates are the same stay. It belongs to the
        same moment as the next `plan` and `waiting`, though people decide meanwhile: read such inputs once.
        """
        return ""

    def waiting(self) -> tuple[int, int] | None:
        """How many decisions are missing, of how many; None where none is. Asked between the plan and its shards."""
        return None

    def media_names(self, candidate: Candidate) -> tuple[str, ...]:
        """Names of the media that a candidate needs, as `media_files` takes them; none where it cannot say."""
        return candidate.media_names

    def media_urls(self) -> Mapping[str, str]:
        """Where media can be fetched, by name, as far as annotations tell."""
        return {}

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | TableRows | Rejected]:
        """One result a candidate, in order; a candidate that fails becomes a `Rejected`.

        Candidates of one group come together, and as many groups as fill `passes` micro-batches. Results are encoded
        as they come where no filter judges images.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method make")

    def report_files(self) -> Mapping[str, bytes]:
        """Files that describe what is planned from, by the names in ``reports``, to lie beside the plan."""
        return {}

    def media_files(self) -> Media | None:
        """Where its media are looked for; None where they are not in a folder of this machine."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCandidate(Candidate):
    """A row of an earlier stage. row: its columns, as JSON."""

    row: str

    @property
    def values(self) -> dict[str, Any]:
        """The row's columns by name."""
        return cast(dict[str, Any], json.loads(self.row))


class RowStage(Source):
    """A table that asks something costly of each row of an earlier stage, such as a score.

    read_columns: names of the columns that it reads; all of the index when empty.
    """

    makes = "table"
    candidate = RowCandidate
    read_columns: ClassVar[tuple[str, ...]] = ()

    def plan(self) -> Iterator[Candidate]:
        """A candidate for each row, with the row's identity, in the order of the earlier stage."""
        earlier = self.earlier()
        columns = self.read_columns or [name for name in earlier.columns() if name not in IDENTIFYING]
        for batch in earlier.batches(("identity", *TERMS, *columns)):
            for row in batch.to_pylist():
                identity, shows = json.loads(row.pop("identity")), (Terms(*map(row.pop, TERMS)),)
                text = canonical_json(row).decode()
                yield RowCandidate(**self.identified(*identity, shows=shows), row=text)

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """The rows of each candidate, of `rows`."""
        for candidate, made in zip(candidates, self.rows(cast(Sequence[RowCandidate], candidates)), strict=True):
            yield made if isinstance(made, Rejected) else TableRows(candidate.key, made)

    def rows(self, batch: Sequence[RowCandidate]) -> Iterator[list[dict[str, Any]] | Rejected]:
        """Rows with the columns of ``row_schema`` for each row of a batch, in order."""
        raise NotImplementedError(f"{type(self).__name__} has no method rows")


class TableStage(Source):
    """A table that joins, ranks, selects, samples or removes duplicates: a function of the indices that it reads.

    It has no shards: what `transform` gives is its index. ``row_schema`` has its own columns, in their order.
    """

    makes = "table"

    def transform(self, *tables: pl.LazyFrame) -> pl.LazyFrame | pl.DataFrame:
        """The rows of this table, in their final order.

        Args:
            tables: the index of each stage that it reads, in the order of ``reads``; ``key`` and ``split`` aside they
                have the columns of the earlier stage, in its order.

        Returns:
            ``identity``, ``licence``, ``credit``, ``source_url`` and the columns of ``row_schema``; where ``group`` is
            absent, each row is its own. The engine adds key and split, and settles the terms. What is left out is
            counted in `excluded`, with examples (`LeftOut.add`).
        """
        raise NotImplementedError(f"{type(self).__name__} has no method transform")

    def plan(self) -> Iterator[Candidate]:
        """None: it has no shards."""
        return iter(())


#: Columns of an index that say which row it is, and under which terms.
IDENTIFYING = ("key", "identity", "tar", "split", "group", *TERMS, "content", "sources")
