"""Settings that come from a recipe: the bases of all, of those with inputs somewhere, of sources and of filters."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator

from twinset.contracts.doors import KeyFor, OfKind, Registry, marks, types_in
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import StatedTerms
from twinset.contracts.locations import Location, is_model_folder
from twinset.contracts.markdown import block_of
from twinset.contracts.references import Reference


class Tally(NamedTuple):
    """Answers, and the tokens that they took. prompt_tokens, completion_tokens: read and written."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def plus(self, other: Tally) -> Tally:
        """The sum of both."""
        return Tally(*(mine + more for mine, more in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.answers:,} answers, {self.prompt_tokens:,} tokens read and {self.completion_tokens:,} written"


#: How often each whole number occurs, or names with their counts, most frequent first.
Counts = Mapping[Any, int]


@dataclass(frozen=True, slots=True)
class Steps:
    """Histograms over the same bins, one line each. edges: of the bins; counts: of each bin, by the line's name."""

    edges: Sequence[float]
    counts: Mapping[str, Sequence[int]]


#: Panels side by side, by title.
Panels = Mapping[str, Counts | Steps]


class Settings(BaseModel):
    """Strict: an unknown key is an error, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


#: What a step of a build needs: annotations to plan, media to make shards, models to name weights and to make shards.
Need = Literal["annotations", "media", "models"]
#: Work pools, by what their workers have.
Pool = Literal["cpu", "render", "gpu"]


@dataclass(frozen=True, slots=True)
class Place:
    """Marks a setting that says where inputs lie: no part of what is made, since inputs enter the digest by content.

    what: a ``file``, a ``folder``, ``any`` of both, a ``model`` or ``words`` (a folder or file, or a name that stays in
    the digest), a ``cache`` (a folder that is written, and made where it is absent), ``decisions`` (a file of people's
    answers, which the review page writes) or a ``server`` (a URL). need: the step that reads it.
    """

    what: Literal["file", "folder", "any", "model", "words", "cache", "decisions", "server"]
    need: Need


@dataclass(frozen=True, slots=True)
class Reads:
    """Marks a setting that names an earlier stage of the recipe, or the folder or URL of one that was built before."""


AnnotationFile = Annotated[Location, Place("file", "annotations")]
MediaFolderPath = Annotated[Location, Place("folder", "media")]
StageName = Annotated[str, Reads()]


class PlacedSettings(Settings):
    """Settings of which some say where inputs lie, and some how the work is done.

    A setting can itself be such settings, or a list of them, such as ``engine``: its settings are ``engine.model`` …

    execution: settings that decide how samples are made, not what they are; the runtime class names those.
    reasons: what the reasons mean that samples are rejected, or records left out, for. scored: what the numbers in a
    sample's ``scores`` mean, by name; unmeasured: the number that stands there where it was not measured. reference:
    what to cite; of a source, the data set whose file format it reads, or the method that it follows.
    """

    kind: str

    execution: ClassVar[tuple[str, ...]] = ()
    reasons: ClassVar[Mapping[str, str]] = {}
    scored: ClassVar[Mapping[str, str]] = {}
    unmeasured: ClassVar[Mapping[str, float]] = {}
    reference: ClassVar[Reference] = Reference("")

    @property
    def scores_meant(self) -> Mapping[str, str]:
        """As `scored`, where settings decide it."""
        return self.scored

    @property
    def meanings(self) -> Mapping[str, str]:
        """`reasons` of these settings and of those within, such as an engine's."""
        return dict(ChainMap(dict(self.reasons), *(dict(one.meanings) for _, one in self.within())))

    @property
    def brought(self) -> dict[str, str]:
        """Packages, with their versions, that brought kinds of settings within, by key path; none for twinset's own."""
        found = {}
        for name, one in self.within():
            door = marks(type(self), OfKind).get(name.partition(".")[0])
            if door is not None and (package := door.distribution(one.kind)):
                found[name] = package
            found |= {f"{name}.{key}": package for key, package in one.brought.items()}
        return found

    def places(self) -> Iterator[tuple[str, Place, Any]]:
        """Key path, mark and value of each place that is set; one item for each entry of a list."""
        for name, mark in marks(type(self), Place).items():
            value = getattr(self, name)
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, float):
                    continue  # a setting that may be a file or a share
                # A model that is no folder is a name, which is part of what is made; so with words.
                if one is not None and (mark.what not in ("model", "words") or is_model_folder(str(one))):
                    yield name, mark, one
        for name, inner in self.within():
            yield from ((f"{name}.{key}", mark, one) for key, mark, one in inner.places())

    def check_device(self, key: str) -> None:
        """Raise `WrongUse` when this machine lacks the device that the settings ask for."""

    def server_keys(self) -> Iterator[tuple[str, str, str]]:
        """Key path, environment variable and server's URL of each key that is set."""
        for name, mark in marks(type(self), KeyFor).items():
            if (variable := getattr(self, name)) is not None:
                yield name, variable, str(getattr(self, mark.server))
        for name, inner in self.within():
            yield from ((f"{name}.{key}", variable, url) for key, variable, url in inner.server_keys())

    def within(self) -> Iterator[tuple[str, PlacedSettings]]:
        """Key path and value of each setting that is itself settings with places."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, PlacedSettings):
                yield name, value
            elif isinstance(value, tuple):
                yield from ((f"{name}.{n}", one) for n, one in enumerate(value) if isinstance(one, PlacedSettings))

    @property
    def locations(self) -> tuple[str, ...]:
        """Key paths of settings that hold paths of this machine, addresses, and names of stages."""
        return tuple(dict.fromkeys((*(name for name, _, _ in self.places()), *marks(type(self), Reads))))

    @property
    def incidental(self) -> tuple[str, ...]:
        """Key paths of settings that are left out of the digest: locations, and `execution`."""
        inner = [f"{name}.{key}" for name, one in self.within() for key in one.incidental]
        return tuple(dict.fromkeys((*self.locations, *self.execution, *inner)))

    @classmethod
    def leads_to(cls, setting: str) -> str:
        """What kind of place a setting says: as `Place.what`, or ``stage``; empty where it is none."""
        place = marks(cls, Place).get(setting)
        return place.what if place is not None else "stage" if setting in marks(cls, Reads) else ""

    @classmethod
    def key_for(cls, setting: str) -> str:
        """The setting with the URL of the server whose key a setting names; empty where it names none."""
        mark = marks(cls, KeyFor).get(setting)
        return mark.server if mark is not None else ""

    @classmethod
    def inner(cls, setting: str, kind: Any) -> type[PlacedSettings] | None:
        """The class of the settings within a setting, of those that it may be the one of a kind; None without one."""
        door = marks(cls, OfKind).get(setting)
        if door is not None:
            try:
                return cast(type[PlacedSettings], door.find(str(kind)))
            except WrongUse:
                return None  # said when the settings are checked
        field = cls.model_fields.get(setting)
        for one in types_in(field.annotation) if field is not None else ():
            if isinstance(one, type) and issubclass(one, PlacedSettings):
                named = one.model_fields["kind"].annotation
                if kind in get_args(named):
                    return one
        return None


class SourceSettings(PlacedSettings, StatedTerms):
    """Settings of one kind of source, and all that the rest of twinset must know of that kind.

    Subclasses set ``kind`` as a `Literal` with their name, and the class variables below.

    makes: name of the sample kind (`contracts.kinds`), such as ``pair``, or ``table``. paper: the benchmark whose
    procedure is followed, if any. group: what a group of candidates is called: ``video``, ``scene``. verb: how samples
    come from it, as in ``made from``. unbounded: whether it could plan without end, so that a recipe must set
    ``count``; whole: whether all that it can plan is planned, so that a recipe cannot set it. synthetic: whether its
    samples are drawn or rendered; then workers need all inputs that the plan needed. reports: names of the JSON files
    that its generator writes beside the plan. reads_subsets: whether it may read a subset of its own recipe, which can
    lose duplicates after others have read it. card_template: Markdown with the blocks ``introduction``, ``how_made``
    and ``notes``, filled with ``source`` (these settings) and ``reports``; or override the methods of these names.
    """

    makes: ClassVar[str] = "pair"
    paper: ClassVar[Reference | None] = None
    group: ClassVar[str] = "group"
    verb: ClassVar[str] = "made from"
    unbounded: ClassVar[bool] = False
    synthetic: ClassVar[bool] = False
    reports: ClassVar[tuple[str, ...]] = ()
    reads_subsets: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    card_template: ClassVar[Path | None] = None

    @model_validator(mode="after")
    def _no_choice_stands_twice(self) -> Self:
        for key, field in type(self).model_fields.items():
            value = getattr(self, key)
            if isinstance(value, tuple) and any(get_origin(one) is Literal for one in get_args(field.annotation)):
                for choice, times in Counter(value).items():
                    if times > 1:
                        raise ValueError(f"{key}: {choice!r} stands twice; leave one out")
        return self

    def introduction(self) -> str:
        """Markdown for the card's introduction, such as the question that a task asks; empty when there is nothing."""
        return block_of(self.card_template, "introduction", source=self)

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """Markdown for the card's section on how samples were made; empty when the introduction says it all.

        Args:
            reports: the JSON of each of the class's ``reports`` that lies beside the plan, by name.
        """
        return block_of(self.card_template, "how_made", source=self, reports=reports)

    @property
    def metered(self) -> bool:
        """Whether it asks language models: the logs of its shards then say how many tokens they took."""
        return False

    def cost(self, spent: Tally) -> float | None:
        """What language models cost, in the unit of the recipe's prices; None where it names none."""
        return None

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Panels]:
        """What pictures show that `how_made` names as ``_meta/NAME.png``, by that name; none without its report."""
        return {}

    def notes(self) -> str:
        """A Markdown list for the card's section on biases: what no count can tell; empty when there is nothing."""
        return block_of(self.card_template, "notes", source=self)

    @property
    def made_from(self) -> Reference:
        return self.reference  # where settings do not decide it

    @property
    def planned_from(self) -> str:
        """What a plan is read from, for messages."""
        files = (str(path) for _, place, path in self.places() if place.need == "annotations")
        return ", ".join((*self.reads, *files)) or self.kind

    @property
    def pool(self) -> Pool:
        """The work pool whose workers make its shards, unless the recipe names one."""
        return "cpu"

    @property
    def shards_at_a_time(self) -> int:
        """How many shards a machine makes at once unless asked otherwise; 0: one a core."""
        return 0

    @property
    def scores_given(self) -> tuple[str, ...] | None:
        """Names of the scores that its rows have; None where its settings do not say."""
        return None

    def misfit(self, earlier: SourceSettings) -> str:
        """Why an earlier stage cannot give what this one reads, and the remedy; "" if it can. Asked before any work."""
        return ""

    @property
    def copies(self) -> str | None:
        """The stage whose samples it copies byte by byte; None where it makes its own."""
        return None

    @property
    def reads(self) -> tuple[str, ...]:
        """Stages, or folders of finished stages, that the plan is read from."""
        return tuple(value for name in marks(type(self), Reads) if (value := getattr(self, name)) is not None)


class FilterSettings(PlacedSettings):
    """Settings of one kind of filter.

    judges: ``captions`` before anything is decoded, ``frames`` one by one, or whole ``pairs``; only filters of frames
    fit samples of every kind.
    """

    judges: ClassVar[Literal["captions", "frames", "pairs"]]

    def how_judged(self) -> str:
        """Markdown for the card's section on how samples were made, such as which detectors; empty for nothing."""
        return ""


SOURCES = Registry[SourceSettings]("source", SourceSettings, "twinset.generators", "twinset.sources")
FILTERS = Registry[FilterSettings]("filter", FilterSettings, "twinset.filters", "twinset.filters")


#: What of `Place.what` must exist; the rest is looked for by what opens it, or made.
_NOUNS = {"file": "file", "folder": "folder", "any": "file or folder", "words": "file or folder"}


def check_places(settings: PlacedSettings, key: str, needs: Collection[Need]) -> None:
    """Raise `WrongUse` where an input is absent, naming the setting and the remedy.

    Args:
        key: of these settings in the recipe, such as ``subsets.eq-ag.source``.
        needs: which inputs the next step reads.
    """
    for setting, place, path in settings.places():
        if place.need not in needs or place.what not in _NOUNS or "://" in str(path):
            continue
        at = Path(path)
        if not {"file": at.is_file, "folder": at.is_dir}.get(place.what, at.exists)():
            noun = _NOUNS[place.what]
            raise WrongUse(
                f"{key}.{setting}: there is no {noun} {path}; name it with --set {key}.{setting}={noun.upper()}"
            )
