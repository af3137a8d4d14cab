"""The models of a recipe: its stages and subsets, and what of them decides bytes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, StringConstraints, model_validator

from twinset.contracts.candidate import SPLIT
from twinset.contracts.errors import WrongUse, suggested
from twinset.contracts.parts import FILTERS, Filter
from twinset.contracts.recipe.strict_yaml import value_at
from twinset.contracts.references import Reference, checked_bibtex, checked_cite, cited_entry
from twinset.contracts.source import SOURCES, PlacedSettings, Pool, Settings, SourceSettings

PARTS = ("stages", "subsets")  # both hold stages by name
MOST = 10**12  # candidates
STAGES = "_stages"  # the folder below OUT of stages that are not published
LONGEST_NAME = 60  # characters: a tar member's name is the subset's, a hash and a field, and holds 100
SUBSET_NAME = re.compile(rf"(?!.{{{LONGEST_NAME + 1}}})[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Encoding(Settings):
    """How images are stored.

    format: of the files. quality: JPEG or WebP quality; ignored by PNG.
    """

    format: Literal["jpg", "png", "webp"] = "jpg"
    quality: int = Field(default=95, ge=1, le=100)


def _asking(raw: Any) -> Any:
    """``screening: true``, or its settings, as those of a source whose pairs are named when the recipe is whole."""
    if raw is None or raw is False:
        return None
    raw = {} if raw is True else raw
    if not isinstance(raw, Mapping):
        raise ValueError("write true, false, or settings of pair-screening such as overlap")
    if {"kind", "pairs"} & raw.keys():
        raise ValueError("people are asked about the pairs of this subset; remove kind and pairs")
    return {**raw, "kind": "pair-screening", "pairs": ""}


class Subset(Settings):
    """One stage of a build; a subset when it is published.

    source: settings of where candidates and samples come from. filters: settings of what is kept, in order.
    encoding: how images are stored. split: the folder of its tars, and the split that readers load.
    count: how many candidates are planned: the first so many of a source that could plan more, all when absent. An
    unbounded source needs one.
    shard_size: candidates a shard aims at; a group (a video) is never split, so a shard can hold more.
    pool: the work pool whose workers make it; by default the one that the source asks for.
    known_as: the name that keys and random choices of its samples are made from; its own when empty.
    language: of the captions, as BCP 47 names it, such as ``de`` or ``pt-BR``; the card and Croissant say it.
    cites: whose the annotations, captions, ratings or photographs are that it reads: BibTeX entries, or keys of
    ``manifests/references.bib``. A data set is named where this says so, and nowhere else.
    follows: the paper whose procedure it follows, where that is not the one that its kind of source follows: as one of
    ``cites``.
    screening: ``true``, or settings of ``pair-screening``: people keep or drop its pairs before they are published.
    """

    source: Annotated[SerializeAsAny[SourceSettings], SOURCES]
    filters: tuple[Annotated[SerializeAsAny[Filter], FILTERS], ...] = ()
    encoding: Encoding = Encoding()
    count: int | None = Field(default=None, ge=1, le=MOST)
    shard_size: int = Field(default=256, ge=1, le=MOST)
    split: str = Field(default="test", pattern=SPLIT)
    known_as: str = Field(default="", pattern=r"^([a-z][a-z0-9-]*)?$", max_length=LONGEST_NAME)
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")
    cites: tuple[Annotated[str, AfterValidator(checked_cite)], ...] = ()
    follows: Annotated[str, AfterValidator(checked_cite)] | None = None
    screening: Annotated[Any, SOURCES, BeforeValidator(_asking)] = Field(default=None, exclude=True)
    pool: Pool = Field(default_factory=lambda known: known["source"].pool if "source" in known else "cpu")

    @property
    def paper(self) -> Reference | None:
        """The paper whose procedure it follows."""
        return self.source.paper if self.follows is None else Reference.of_entry(cited_entry(self.follows))

    def settings(self) -> dict[str, PlacedSettings]:
        """The source and the filters by their keys: ``source``, ``filters.0``."""
        return {"source": self.source, **{f"filters.{number}": judge for number, judge in enumerate(self.filters)}}

    @model_validator(mode="after")
    def _fits_its_source(self) -> Subset:
        source = self.source
        if source.unbounded and self.count is None:
            raise ValueError(f"set count, the number of {source.makes}s to sample")
        if source.whole and self.count is not None:
            raise ValueError(f"{source.kind} plans all that it reads; set count on the stage that it reads instead")
        for judge in self.filters:
            if source.copies or source.makes == "table":
                raise ValueError(f"filter {judge.kind} judges images, and {source.kind} makes none; remove it")
            if source.makes != "pair" and judge.judges != "frames":
                problem = f"judges {judge.judges}, and these are {source.makes}s; use filters of single images alone"
                raise ValueError(f"filter {judge.kind} {problem}")
        return self


def _stage_name(name: str) -> str:
    if not SUBSET_NAME.fullmatch(name):
        raise ValueError(f"a stage's name is lowercase words joined by dashes, at most {LONGEST_NAME} characters")
    return name


Stages = dict[Annotated[str, AfterValidator(_stage_name)], Subset]


class Recipe(Settings):
    """A whole build.

    name: of the recipe; cards and Prefect's flows show it. description: in words.
    title: of the published dataset. authors: who answers for it, each ``Family, Given`` or the name of a group.
    citation: BibTeX of the text that presents it. date: of its publication, ``YYYY-MM-DD``.
    seed: that all random choices are made from.
    stages: what subsets are planned from and no reader of the dataset needs. subsets: what is published.
    max_missing: share of candidates (0-1) whose media may be missing before the build fails.
    allow_mixed_runtimes: whether shards that a network made on different types of machine may be in one stage.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    description: str = ""
    title: str = ""
    authors: tuple[Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"\w")], ...] = ()
    citation: Annotated[str, AfterValidator(checked_bibtex)] = ""
    date: datetime.date | None = None
    seed: int = Field(default=0, ge=0)
    max_missing: float = Field(default=0.01, ge=0, le=1)
    allow_mixed_runtimes: bool = False
    stages: Stages = Field(default={})
    subsets: Stages = Field(default={})

    @property
    def all(self) -> dict[str, Subset]:
        """Stages and subsets by name, each after those that it reads."""
        every = {**self.stages, **self.subsets}
        return {name: every[name] for name in TopologicalSorter({n: self.reads(n) for n in every}).static_order()}

    def reads(self, name: str) -> list[str]:
        """The stages of this recipe that a stage or subset is planned from."""
        return [stage for stage in self[name].source.reads if "/" not in stage]

    def places(self) -> Iterator[tuple[str, Any, Any]]:
        """Key path, mark and value of each place that is set; one item for each entry of a list."""
        for name, stage in self.all.items():
            for key, placed in stage.settings().items():
                yield from ((f"{self.key(name)}.{key}.{path}", mark, value) for path, mark, value in placed.places())

    def home(self, name: str) -> str:
        """Where a stage or subset lies below OUT."""
        return f"{STAGES}/{name}" if name in self.stages else name

    def key(self, name: str) -> str:
        """The key path of a stage or subset as the recipe was written, for messages."""
        known_as = self.stages[name].known_as if name in self.stages else name
        return f"subsets.{known_as}" if known_as in self.subsets else f"stages.{name}"

    def paper(self, name: str) -> Reference | None:
        """The paper whose procedure the samples of a stage follow: what it says itself, else that of `made_in`."""
        return (self[name] if self[name].follows is not None else self.made_in(name)).paper

    def made_in(self, name: str) -> Subset:
        """The settings of a stage, or of the one whose samples it copies."""
        source = self[name].source
        copied = getattr(source, source.copies) if source.copies else ""
        return self.made_in(copied) if copied in self.stages else self[name]

    def __getitem__(self, name: str) -> Subset:
        return self.stages[name] if name in self.stages else self.subsets[name]

    def only(self, names: Iterable[str]) -> Recipe:
        """The named subsets or stages alone, with the stages that they read.

        All subsets when no name is given: a stage that none of them reads, such as one of a choice that is not made, is
        left out. A recipe without subsets has all its stages.
        """
        needed = {*names} or {*self.subsets} or {*self.stages}
        for name in needed - self.all.keys():
            known = suggested(name, (*self.subsets, *self.stages))
            raise WrongUse(f"recipe {self.name} has no subset {name!r}; {known}")
        for name in reversed(self.all):  # a stage comes after all that read it
            if name in needed:
                needed |= {*self.reads(name)}
        kept = {part: {name: self[name] for name in getattr(self, part) if name in needed} for part in PARTS}
        return self.model_copy(update=kept)

    @model_validator(mode="after")
    def _with_screening(self) -> Recipe:
        for name, stage in self.stages.items():
            if stage.screening is not None:
                raise ValueError(
                    f"stages.{name}: people screen what is published; remove screening, or make it a subset"
                )
        for name, subset in self.subsets.items():
            if subset.screening is not None:
                further, self.subsets[name] = subset.screening.stages_for(name, subset)
                for stage, settings in further.items():
                    if stage in self.stages or stage in self.subsets:
                        raise ValueError(f"{name}: screening adds a stage {stage}; rename that of the recipe")
                    self.stages[_stage_name(stage)] = settings
        return self

    @model_validator(mode="after")
    def _reads_fit(self) -> Recipe:
        if repeated := sorted(self.stages.keys() & self.subsets.keys()):
            raise ValueError(f"{repeated[0]} is a stage and a subset; rename one")
        for name in (*self.stages, *self.subsets):
            readable = {**self.stages, **(self.subsets if self[name].source.reads_subsets else {})}
            for read in self.reads(name):
                if read not in readable:
                    listed = ", ".join(readable) or "none"
                    raise ValueError(
                        f"{name} reads {read!r}, which is not among the recipe's stages ({listed}); correct it, or "
                        "write the folder of a stage that was built before, such as ./out/_stages/scene-graphs"
                    )
                if problem := self[name].source.misfit(self[read].source):
                    raise ValueError(f"{name}: {problem}")
        try:
            self.all  # noqa: B018
        except CycleError as error:
            raise ValueError(f"stages read each other in a circle: {' -> '.join(error.args[1])}") from error
        return self


def content_of(subset: Subset, seed: int) -> dict[str, Any]:
    """What of a stage's settings decides its shards' bytes: not where its files lie, where it runs, how many."""
    settings = subset.model_dump(mode="json", exclude={"pool", "count", "language", "cites", "follows"})
    for key, placed in subset.settings().items():
        for path, part in placed.parts(f"{key}."):
            values = value_at(settings, path.split(".")[:-1])
            for name in part.incidental:
                del values[name]
    if not subset.known_as:
        del settings["known_as"]
    return {"seed": seed, **settings}
