"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from manifests.candidate import SPLIT
from manifests.errors import WrongUse
from manifests.filter_settings import OF_ONE_IMAGE, DirectionalSimilarity, Filter
from manifests.overrides import absolute, cut, override, spelled_out
from manifests.settings import Settings
from manifests.source_settings import Source
from manifests.strict_yaml import MOST_BYTES, load_yaml
from shards.kinds.names import PAIR, kind_of_source

SHIPPED = Path(__file__).parent / "recipes"
MOST = 10**12  # candidates
LONGEST_NAME = 60  # characters: a tar member's name is the subset's, a hash and a field, and holds 100
SUBSET_NAME = re.compile(rf"(?!.{{{LONGEST_NAME + 1}}})[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Encoding(Settings):
    """How images are stored. quality: JPEG or WebP quality; ignored by PNG."""

    format: Literal["jpg", "png", "webp"] = "jpg"
    quality: int = Field(default=95, ge=1, le=100)


class Subset(Settings):
    """One subset of a build.

    count: how many candidates are planned: the first so many of a source that could plan more, all when absent. What
    is drawn rather than found could be planned for ever, and needs one.
    shard_size: candidates a shard aims at; a group (a video) is never split, so a shard can hold more.
    pool: the work pool whose workers make it.
    """

    source: Source
    filters: tuple[Filter, ...] = ()
    encoding: Encoding = Encoding()
    count: int | None = Field(default=None, ge=1, le=MOST)
    shard_size: int = Field(default=256, ge=1, le=MOST)
    split: str = Field(default="test", pattern=SPLIT)
    pool: Literal["cpu", "render", "gpu"] = "cpu"

    @model_validator(mode="after")
    def _ends(self) -> Subset:
        if self.source.endless and self.count is None:
            raise ValueError(f"set count, the number of {kind_of_source(self.source.kind).name}s to draw")
        return self

    @model_validator(mode="after")
    def _filters_fit(self) -> Subset:
        kind = kind_of_source(self.source.kind)
        for chosen in self.filters:
            if kind is not PAIR and chosen.kind not in OF_ONE_IMAGE:
                fitting = ", ".join(OF_ONE_IMAGE)
                raise ValueError(f"filter {chosen.kind} judges pairs, and these are {kind.name}s; use {fitting} alone")
        return self


class Recipe(Settings):
    """A whole build. max_missing: share of candidates (0-1) whose media may be missing before the build fails."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    description: str = ""
    seed: int = Field(default=0, ge=0)
    max_missing: float = Field(default=0.01, ge=0, le=1)
    allow_mixed_runtimes: bool = False
    subsets: dict[str, Subset] = Field(min_length=1)

    def only(self, names: Iterable[str]) -> Recipe:
        """This recipe with the named subsets alone (all of them when no name is given)."""
        wanted = list(names)
        for name in wanted:
            if name not in self.subsets:
                raise WrongUse(f"recipe {self.name} has no subset {name!r}; it has: {', '.join(self.subsets)}")
        return self.model_copy(update={"subsets": {k: v for k, v in self.subsets.items() if not wanted or k in wanted}})


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
    subsets = raw.get("subsets")
    for name in subsets if isinstance(subsets, dict) else ():
        if not isinstance(name, str) or not SUBSET_NAME.fullmatch(name):
            shown, most = repr(name)[: LONGEST_NAME + 20], f"at most {LONGEST_NAME} characters"
            raise WrongUse(f"{path}: subset name {shown} must be lowercase words joined by dashes, {most}")
    try:
        return Recipe.model_validate(raw)
    except ValidationError as error:
        keys = [spelled_out(setting.partition("=")[0].split(".")) for setting in settings]
        raise WrongUse("\n".join(_explain(path, keys, raw, problem) for problem in error.errors())) from error


def content_of(subset: Subset, seed: int) -> dict[str, Any]:
    """What of a subset's settings decides its shards' bytes: all but where its files lie, where it runs, how many."""
    settings = subset.model_dump(mode="json", exclude={"pool", "count"})
    for key in (*subset.source.locations, *subset.source.execution):
        settings["source"].pop(key)
    for chosen, recorded in zip(subset.filters, settings["filters"], strict=True):
        if isinstance(chosen, DirectionalSimilarity):
            for key in (*chosen.locations, *chosen.execution):
                recorded.pop(key)
    return {"seed": seed, **settings}


def _locate(recipe: str) -> tuple[Path, Path]:
    shipped = SHIPPED / f"{recipe}.yaml"
    if recipe in shipped_recipes():
        return shipped, Path.cwd()
    path = Path(recipe)
    if path.is_file():
        return path, path.absolute().parent
    raise WrongUse(f"no recipe {recipe!r}: name one of {', '.join(shipped_recipes())}, or the path of a YAML file")


def _explain(path: Path, keys: list[list[str]], raw: Any, problem: Any) -> str:
    """One problem of a recipe as an instruction. keys: key paths that were given with --set."""
    where = [str(part) for part in problem["loc"]]
    message, hint = problem["msg"], ""
    if problem["type"] == "extra_forbidden":
        siblings = _known_keys(where[:-1])
        near = difflib.get_close_matches(where[-1], siblings, n=1)
        message = "unknown key"
        hint = f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(siblings)}" if siblings else ""
    elif problem["type"] == "missing":
        message, hint = "missing", "; add it to the recipe or pass it with --set"
    place = _without_kinds(raw, where)
    asked = any(key == place[: len(key)] for key in keys)
    # An unknown key can be one that leads to what was set.
    asked |= problem["type"] == "extra_forbidden" and any(place == key[: len(place)] for key in keys)
    return f"{'--set ' if asked else f'{path}: '}{cut('.'.join(place)) or 'recipe'}: {cut(message)}{hint}"


def _without_kinds(raw: Any, where: list[str]) -> list[str]:
    """The key path as it stands in the recipe: pydantic puts the kind of a source or filter between its keys."""
    found = []
    for part in where:
        if isinstance(raw, dict) and part not in raw and raw.get("kind") == part:
            continue
        found.append(part)
        raw = raw.get(part) if isinstance(raw, dict) else raw[int(part)] if isinstance(raw, list) else None
    return found


def _known_keys(where: list[str]) -> list[str]:
    """Keys allowed at a key path, found by walking the models' JSON schema."""
    schema = Recipe.model_json_schema()
    definitions = schema.get("$defs", {})
    here: Any = schema
    for part in where:
        here = _resolve(here, definitions)
        if "discriminator" in here and part in here["discriminator"]["mapping"]:
            here = {"$ref": here["discriminator"]["mapping"][part]}
        elif part in here.get("properties", {}):
            here = here["properties"][part]
        elif "items" in here:
            here = here["items"]
        else:
            here = here.get("additionalProperties") or {}
        if not isinstance(here, dict):
            return []
    return sorted(_resolve(here, definitions).get("properties", {}))


def _resolve(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return schema
