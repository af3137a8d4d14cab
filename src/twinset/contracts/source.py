"""Settings that come from a recipe: the bases of all, of those with inputs somewhere, and of sources."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PrivateAttr, ValidationInfo, model_validator

from twinset.contracts.doors import Registry, marks, problem_at
from twinset.contracts.errors import WrongUse, suggested
from twinset.contracts.licences.terms import StatedTerms
from twinset.contracts.locations import Location, Typed, is_brought_model, is_model_folder, is_place
from twinset.contracts.references import Reference


class Settings(BaseModel):
    """Strict: an unknown key is an error, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, raw: Any) -> Any:
        for key in raw if isinstance(raw, Mapping) else ():
            if key not in cls.model_fields:
                problem = f"unknown key; {suggested(str(key), sorted(cls.model_fields))}"
                raise problem_at((str(key),), raw[key], problem, "extra_forbidden")
        return raw


#: What a step of a build needs: annotations to plan, media to make shards, models to name weights and to make shards.
Need = Literal["annotations", "media", "models"]
#: Work pools, by what their workers have.
Pool = Literal["cpu", "render", "gpu"]


@dataclass(frozen=True, slots=True)
class Place:
    """Marks a setting that says where inputs lie: no part of what is made, since inputs enter the digest by content.

    what: ``any`` is a file or a folder; a ``model`` or ``words`` can be a name, which stays in the digest; a ``stage``
    is one of the recipe, or the folder or URL of one that was built; a ``cache`` is a folder that is written;
    ``decisions`` are a file of people's answers; a ``server`` is a URL; a ``variable`` of the environment holds the key
    of the server beside it. need: the step that reads it.
    """

    what: Literal["file", "folder", "any", "model", "words", "stage", "cache", "decisions", "server", "variable"]
    need: Need

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return BeforeValidator(self._located).__get_pydantic_core_schema__(source, handler)

    def _located(self, value: Any, info: ValidationInfo) -> Any:
        """As a path of this machine; without a folder that relative ones count from, and of other forms, as it is."""
        if isinstance(value, str) and "\0" in value:
            raise ValueError("a NUL, which no path and no name has; remove it")
        base = Path.cwd() if isinstance(value, Typed) else (info.context or {}).get("base")
        if base is None or not value or not isinstance(value, str) or self.what in ("server", "variable"):
            return value
        path = os.path.normpath(base / os.path.expanduser(value))
        if self.what == "stage":  # a name without a slash is a stage of the recipe
            return path if "/" in value and "://" not in value else value
        if self.what in ("model", "words"):
            # As Hugging Face's libraries have it, a folder that is there comes before an id of the hub.
            there = self.what == "model" and not is_brought_model(value) and os.path.exists(path)
            return path if is_model_folder(value) or there else value
        return value if is_place(value) or "://" in value else path

    def held(self, value: Any) -> list[Any]:
        """The places that a setting holds: no model or words that are a name, and no share where a file may stand."""
        items = [item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, str | Path)]
        return [item for item in items if self.what not in ("model", "words") or is_model_folder(str(item))]


AnnotationFile = Annotated[Location, Place("file", "annotations")]
MediaFolderPath = Annotated[Location, Place("folder", "media")]
StageName = Annotated[str, Place("stage", "annotations")]


class PlacedSettings(Settings):
    """Settings of which some say where inputs lie, and some how the work is done.

    A setting can itself be such settings, or a list of them, such as ``engine``: its settings are ``engine.model`` …
    Where settings decide one of the class variables, it is a property.
    """

    kind: str

    #: Settings that decide how samples are made, not what they are; the runtime class names those.
    execution: ClassVar[tuple[str, ...]] = ()
    #: What the reasons mean that samples are rejected, or records left out, for.
    reasons: ClassVar[Mapping[str, str]] = {}
    #: What numbers in a sample's ``scores`` mean, by name, and the number that stands there where none was measured.
    scored: ClassVar[Mapping[str, str]] = {}
    unmeasured: ClassVar[Mapping[str, float]] = {}
    #: What to cite; of a source, the data set whose file format it reads, or the method that it follows.
    reference: ClassVar[Reference] = Reference("")

    _package: str = PrivateAttr("")

    @property
    def package(self) -> str:
        """Name and version of the distribution that brought this kind; empty for twinset's own."""
        return self._package

    def parts(self, path: str = "") -> Iterator[tuple[str, PlacedSettings]]:
        """These settings and those within, each with the beginning of its key paths: ``path``, ``engine.``, …"""
        yield path, self
        for name, value in self:
            if isinstance(value, PlacedSettings):
                yield from value.parts(f"{path}{name}.")
            for number, item in enumerate(value if isinstance(value, tuple) else ()):
                if isinstance(item, PlacedSettings):
                    yield from item.parts(f"{path}{name}.{number}.")

    def places(self) -> Iterator[tuple[str, Place, Any]]:
        """Key path, mark and value of each place that is set; one item for each entry of a list."""
        for path, part in self.parts():
            for name, mark in marks(type(part), Place).items():
                yield from ((f"{path}{name}", mark, item) for item in mark.held(getattr(part, name)))

    @property
    def incidental(self) -> set[str]:
        """Settings that are left out of the digest, but for those within: places, and `execution`."""
        marked = marks(type(self), Place).items()
        placed = {name for name, mark in marked if mark.what == "stage" or mark.held(getattr(self, name))}
        return placed.union(self.execution)

    @property
    def meanings(self) -> Mapping[str, str]:
        """`reasons` of these settings and of those within, such as an engine's."""
        parts = [part for _, part in self.parts()]
        return {reason: meaning for part in reversed(parts) for reason, meaning in part.reasons.items()}

    @property
    def pool(self) -> Pool:
        """The work pool whose workers make its shards, unless the recipe names one."""
        return "gpu" if any(getattr(part, "device", "") == "gpu" for _, part in self.parts()) else "cpu"

    @property
    def shards_at_a_time(self) -> int:
        """How many shards a machine makes at once: one where they would share a GPU or a server; else 0, one a core."""
        asks = any(place.what == "server" for _, place, _ in self.places())
        return 1 if asks or self.pool == "gpu" else 0

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """Raise `WrongUse` before any work where an input of the next step is absent.

        key: of these settings in the recipe, such as ``subsets.eq-ag.source``.
        """
        exists = {"file": Path.is_file, "folder": Path.is_dir, "any": Path.exists, "words": Path.exists}
        for setting, place, path in self.places():
            if place.need not in needs or place.what not in exists or "://" in str(path):
                continue
            if not exists[place.what](Path(path)):
                noun = place.what if place.what in ("file", "folder") else "file or folder"
                remedy = f"name it with --set {key}.{setting}={noun.upper()}"
                raise WrongUse(f"{key}.{setting}: there is no {noun} {path}; {remedy}")

    def check_device(self, key: str) -> None:
        """Raise `WrongUse` when this machine lacks the device that the settings ask for."""


class SourceSettings(PlacedSettings, StatedTerms):
    """Settings of one kind of source, and all that the rest of twinset must know of that kind."""

    makes: ClassVar[str] = "pair"  # the kind of its samples (`contracts.kinds`), or ``table``
    paper: ClassVar[Reference | None] = None  # the benchmark whose procedure is followed
    group: ClassVar[str] = "group"  # what a group of candidates is called: ``video``, ``scene``
    verb: ClassVar[str] = "made from"  # how samples come from what is read
    unbounded: ClassVar[bool] = False  # whether it could plan without end, so that a recipe must set ``count``
    whole: ClassVar[bool] = False  # whether all that it can plan is planned, so that a recipe cannot set ``count``
    synthetic: ClassVar[bool] = False  # drawn or rendered: workers need all inputs that the plan needed
    copies: ClassVar[str] = ""  # the setting that names the stage whose samples it copies byte by byte
    reports: ClassVar[tuple[str, ...]] = ()  # names of the JSON files that lie beside the plan
    #: Whether it may read a subset of its own recipe, which can lose duplicates after others have read it.
    reads_subsets: ClassVar[bool] = False
    #: Markdown with the blocks ``introduction``, such as the question that a task asks, ``how_made``, ``left_out`` and
    #: ``notes`` (a list of what no count can tell), filled with ``source`` (these settings) and ``reports``.
    card_template: ClassVar[Path | None] = None

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Any]:
        """`cards.plots.Panels` of pictures that the card names as ``_meta/NAME.png``, by name; none without reports."""
        return {}

    def misfit(self, earlier: SourceSettings) -> str:
        """Why an earlier stage cannot give what this one reads, and the remedy; "" if it can. Asked before any work."""
        return ""

    @property
    def planned_from(self) -> str:
        """What a plan is read from, for messages."""
        return ", ".join(str(path) for _, place, path in self.places() if place.need == "annotations") or self.kind

    @property
    def reads(self) -> tuple[str, ...]:
        """Stages, or folders of finished stages, that the plan is read from."""
        return tuple(stage for _, place, stage in self.places() if place.what == "stage")


SOURCES = Registry[type[SourceSettings]]("source", SourceSettings, "twinset.generators", "twinset.sources")
