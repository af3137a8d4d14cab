"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, SerializeAsAny, ValidationError, model_validator

from manifests.candidate import SPLIT
from manifests.errors import WrongUse
from manifests.overrides import absolute, cut, override, spelled_out
from manifests.registry import FILTERS, SOURCES, Registry, UnknownKind
from manifests.settings import Settings
from manifests.source import FilterSettings, SourceSettings
from manifests.strict_yaml import MOST_BYTES, load_yaml

SHIPPED = Path(__file__).parent / "recipes"
MOST = 10**12  # candidates
PARTS = ("stages", "subsets")
STAGES = "_stages"  # the folder below OUT of stages that are not published
LONGEST_NAME = 60  # characters: a tar member's name is the subset's, a hash and a field, and holds 100
SUBSET_NAME = re.compile(rf"(?!.{{{LONGEST_NAME + 1}}})[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at a key path. type: as pydantic names it. known: keys that are allowed there, where at hand."""

    where: tuple[str, ...]
    type: str
    message: str
    known: tuple[str, ...] = ()


class InvalidRecipe(WrongUse, ValueError):
    """A recipe that does not fit its models."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{'.'.join(one.where)}: {one.message}" for one in problems))


class Encoding(Settings):
    """How images are stored. quality: JPEG or WebP quality; ignored by PNG."""

    format: Literal["jpg", "png", "webp"] = "jpg"
    quality: int = Field(default=95, ge=1, le=100)


class Subset(Settings):
    """One stage of a build; a subset when it is published.

    count: how many candidates are planned: the first so many of a source that could plan more, all when absent. An
    unbounded source needs one.
    shard_size: candidates a shard aims at; a group (a video) is never split, so a shard can hold more.
    pool: the work pool whose workers make it.
    """

    source: SerializeAsAny[SourceSettings]
    filters: tuple[SerializeAsAny[FilterSettings], ...] = ()
    encoding: Encoding = Encoding()
    count: int | None = Field(default=None, ge=1, le=MOST)
    shard_size: int = Field(default=256, ge=1, le=MOST)
    split: str = Field(default="test", pattern=SPLIT)
    pool: Literal["cpu", "render", "gpu"] = "cpu"

    @model_validator(mode="after")
    def _ends(self) -> Subset:
        if self.source.unbounded and self.count is None:
            raise ValueError(f"set count, the number of {self.source.makes}s to sample")
        return self

    @model_validator(mode="after")
    def _filters_fit(self) -> Subset:
        for chosen in self.filters:
            if self.source.makes != "pair" and chosen.judges != "frames":
                raise ValueError(
                    f"filter {chosen.kind} judges {chosen.judges}, and these are {self.source.makes}s; use filters of "
                    "single images alone"
                )
            if self.source.makes == "table":
                raise ValueError(f"filter {chosen.kind} judges images, and a table has none; remove it")
        return self


class Recipe(Settings):
    """A whole build.

    stages: what subsets are planned from and no reader of the dataset needs. subsets: what is published.
    max_missing: share of candidates (0-1) whose media may be missing before the build fails.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    description: str = ""
    seed: int = Field(default=0, ge=0)
    max_missing: float = Field(default=0.01, ge=0, le=1)
    allow_mixed_runtimes: bool = False
    stages: dict[str, Subset] = Field(default={})
    subsets: dict[str, Subset] = Field(default={})

    @property
    def all(self) -> dict[str, Subset]:
        """Stages and subsets by name, each after those that it reads."""
        every = {**self.stages, **self.subsets}
        return {name: every[name] for name in TopologicalSorter({n: self.reads(n) for n in every}).static_order()}

    def reads(self, name: str) -> list[str]:
        """The stages of this recipe that a stage or subset is planned from."""
        return [one for one in self[name].source.reads if "/" not in one]

    def home(self, name: str) -> str:
        """Where a stage or subset lies below OUT."""
        return f"{STAGES}/{name}" if name in self.stages else name

    def key(self, name: str) -> str:
        """The key path of a stage or subset, for messages."""
        return f"{'stages' if name in self.stages else 'subsets'}.{name}"

    def __getitem__(self, name: str) -> Subset:
        return self.stages[name] if name in self.stages else self.subsets[name]

    def only(self, names: Iterable[str]) -> Recipe:
        """This recipe with the named subsets or stages alone, and the stages that they need (all when no name is given)."""
        waiting = list(names)
        if not waiting:
            return self
        for name in waiting:
            if name not in self.stages and name not in self.subsets:
                listed = ", ".join((*self.subsets, *self.stages))
                raise WrongUse(f"recipe {self.name} has no subset {name!r}; it has: {listed}")
        needed = set(waiting)
        while waiting:
            read = [one for one in self.reads(waiting.pop()) if one not in needed]
            needed |= {*read}
            waiting += read
        parts = {"stages": self.stages, "subsets": self.subsets}
        return self.model_copy(
            update={part: {name: one for name, one in all_.items() if name in needed} for part, all_ in parts.items()}
        )

    @model_validator(mode="after")
    def _reads_fit(self) -> Recipe:
        if both := sorted(self.stages.keys() & self.subsets.keys()):
            raise ValueError(f"{both[0]} is a stage and a subset; rename one")
        for name in (*self.stages, *self.subsets):
            for read in self.reads(name):
                if read not in self.stages:
                    listed = ", ".join(self.stages) or "none"
                    raise ValueError(
                        f"{name} reads {read!r}, which is not among the recipe's stages ({listed}); correct it, or write "
                        "the folder of a stage that was built before, such as ./out/graphs/scene-graphs"
                    )
        try:
            _ = self.all
        except CycleError as error:
            raise ValueError(f"stages read each other in a circle: {' -> '.join(error.args[1])}") from error
        return self


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with twinset."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def load_recipe(recipe: str, settings: Iterable[str] = ()) -> Recipe:
    """Load a recipe by shipped name or path, with ``KEY.PATH=VALUE`` overrides; raises `WrongUse` with the remedy.

    Relative paths count from the recipe's own folder; in shipped recipes and overrides, from the current folder.
    """
    path, base = _locate(recipe)
    try:
        with path.open("rb") as stream:
            raw = load_yaml(stream.read(MOST_BYTES + 1))
    except (OSError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: cannot be read as YAML ({error}); correct the file") from error
    if not isinstance(raw, dict):
        raise WrongUse(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")
    absolute(raw, base)
    settings = list(settings)
    for setting in settings:
        override(raw, setting)
    for name in (name for part in PARTS if isinstance(raw.get(part), dict) for name in raw[part]):
        if not isinstance(name, str) or not SUBSET_NAME.fullmatch(name):
            shown, most = repr(name)[: LONGEST_NAME + 20], f"at most {LONGEST_NAME} characters"
            raise WrongUse(f"{path}: subset name {shown} must be lowercase words joined by dashes, {most}")
    if not raw.get("subsets"):
        raise WrongUse(f"{path}: names no subsets; add one under the key subsets")
    try:
        return parse_recipe(raw)
    except InvalidRecipe as error:
        keys = [spelled_out(setting.partition("=")[0].split(".")) for setting in settings]
        raise WrongUse("\n".join(_explain(path, keys, problem) for problem in error.problems)) from error


def recipe_from_json(content: bytes) -> Recipe:
    """The recipe that a build recorded; raises ValueError, or `manifests.registry.UnknownKind` for a foreign kind."""
    raw = json.loads(content)
    if not isinstance(raw, dict):
        raise ValueError("a recipe is a mapping")
    return parse_recipe(raw)


def parse_recipe(raw: Mapping[str, Any]) -> Recipe:
    """A recipe of plain values, each source and filter checked against the class of its kind; raises `InvalidRecipe`."""
    problems: list[Problem] = []
    parsed: dict[str, Any] = dict(raw)
    for part in PARTS:
        if isinstance(raw.get(part), Mapping):
            parsed[part] = {name: _stage(one, (part, str(name)), problems) for name, one in raw[part].items()}
    try:
        recipe = Recipe.model_validate(parsed)
    except ValidationError as error:
        # What a source or filter lacks was said already, better.
        known = {problem.where for problem in problems}
        found = [Problem(tuple(map(str, one["loc"])), one["type"], one["msg"]) for one in error.errors()]
        problems += [
            one for one in found if not any(one.where[: len(where)] == where[: len(one.where)] for where in known)
        ]
        raise InvalidRecipe(problems or found) from error
    if problems:
        raise InvalidRecipe(problems)
    return recipe


def _stage(raw: Any, where: tuple[str, ...], problems: list[Problem]) -> Any:
    """A stage with its source and filters as settings of their kinds; what is wrong with them goes to ``problems``."""
    if not isinstance(raw, Mapping):
        return raw
    parsed = dict(raw)
    if isinstance(raw.get("source"), Mapping):
        parsed["source"] = _of_kind(SOURCES, raw["source"], (*where, "source"), problems)
    if isinstance(raw.get("filters"), list | tuple):
        filters = enumerate(raw["filters"])
        parsed["filters"] = [_of_kind(FILTERS, one, (*where, "filters", str(n)), problems) for n, one in filters]
    return parsed


def _of_kind(registry: Registry[Any], raw: Any, where: tuple[str, ...], problems: list[Problem]) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    kind = raw.get("kind")
    if not isinstance(kind, str):
        problems.append(Problem((*where, "kind"), "missing" if kind is None else "kind", "a kind is a name"))
        return raw
    try:
        settings = registry.find(kind)
    except UnknownKind as error:
        problems.append(Problem((*where, "kind"), "kind", str(error)))
        return raw
    try:
        return settings.model_validate(raw)
    except ValidationError as error:
        for one in error.errors():
            loc = tuple(map(str, one["loc"]))
            known = tuple(settings.model_fields) if one["type"] == "extra_forbidden" and len(loc) == 1 else ()
            problems.append(Problem((*where, *loc), one["type"], one["msg"], known))
        return raw


def content_of(subset: Subset, seed: int) -> dict[str, Any]:
    """What of a stage's settings decides its shards' bytes: all but where its files lie, where it runs, how many."""
    settings = subset.model_dump(mode="json", exclude={"pool", "count"})
    for key in {*subset.source.locations, *subset.source.execution}:
        settings["source"].pop(key)
    return {"seed": seed, **settings}


def _locate(recipe: str) -> tuple[Path, Path]:
    shipped = SHIPPED / f"{recipe}.yaml"
    if recipe in shipped_recipes():
        return shipped, Path.cwd()
    path = Path(recipe)
    if path.is_file():
        return path, path.absolute().parent
    raise WrongUse(f"no recipe {recipe!r}: name one of {', '.join(shipped_recipes())}, or the path of a YAML file")


def _explain(path: Path, keys: list[list[str]], problem: Problem) -> str:
    """One problem of a recipe as an instruction. keys: key paths that were given with --set."""
    place, message, hint = list(problem.where), problem.message, ""
    if problem.type == "extra_forbidden":
        known = sorted(problem.known or _known_keys(problem.where[:-1]))
        near = difflib.get_close_matches(place[-1], known, n=1)
        message = "unknown key"
        hint = f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(known)}" if known else ""
    elif problem.type == "missing":
        message, hint = "missing", "; add it to the recipe or pass it with --set"
    asked = any(key == place[: len(key)] for key in keys)
    # An unknown key can be one that leads to what was set.
    asked |= problem.type == "extra_forbidden" and any(place == key[: len(place)] for key in keys)
    return f"{'--set ' if asked else f'{path}: '}{cut('.'.join(place)) or 'recipe'}: {cut(message)}{hint}"


def _known_keys(where: tuple[str, ...]) -> Iterable[str]:
    """Keys allowed at a key path that leads to no source or filter."""
    if not where:
        return Recipe.model_fields
    if where[0] in PARTS:
        return {2: Subset.model_fields, 3: Encoding.model_fields if where[-1] == "encoding" else {}}.get(len(where), {})
    return ()
