"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from manifests.errors import WrongUse
from manifests.recipe.models import LONGEST_NAME, SUBSET_NAME, Encoding, Recipe, Subset
from manifests.recipe.overrides import PARTS, absolute, cut, override, spelled_out
from manifests.recipe.strict_yaml import MOST_BYTES, load_yaml
from manifests.registry import FILTERS, SOURCES, Registry, UnknownKind
from manifests.source import FilterSettings, SourceSettings

SHIPPED = Path(__file__).parents[1] / "recipes"


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
        raise WrongUse(f"{path}: subsets: missing; name at least one under the key subsets")
    try:
        return parse_recipe(raw)
    except InvalidRecipe as error:
        keys = [spelled_out(setting.partition("=")[0].split(".")) for setting in settings]
        raise WrongUse("\n".join(_explain(path, keys, problem) for problem in error.problems)) from error


def recipe_from_json(content: bytes) -> Recipe:
    """The recipe that a build recorded; raises ValueError, also when no installed package provides one of its kinds."""
    raw = json.loads(content)
    if not isinstance(raw, dict):
        raise ValueError("a recipe is a mapping")
    return parse_recipe(raw)


def parse_recipe(raw: Mapping[str, Any]) -> Recipe:
    """A recipe of plain values, sources and filters checked against their classes; raises `InvalidRecipe`."""
    problems: list[Problem] = []
    parsed: dict[str, Any] = dict(raw)
    for part in PARTS:
        if isinstance(raw.get(part), Mapping):
            parsed[part] = {name: _stage(one, (part, str(name)), problems) for name, one in raw[part].items()}
    try:
        recipe = Recipe.model_validate(parsed)
    except ValidationError as error:
        problems += [Problem(tuple(map(str, one["loc"])), one["type"], one["msg"]) for one in error.errors()]
        raise InvalidRecipe(problems) from error
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


class _UnknownFilter(FilterSettings):
    """Stands for a filter whose problems are known, so that the rest of the recipe is checked too."""

    judges = "frames"


def _of_kind(registry: Registry[Any], raw: Any, where: tuple[str, ...], problems: list[Problem]) -> Any:
    """The settings of a source or filter; something that stands for them where they have problems."""
    stand_in = SourceSettings.model_construct() if registry is SOURCES else _UnknownFilter.model_construct(kind="")
    if not isinstance(raw, Mapping):
        return raw
    kind = raw.get("kind")
    if not isinstance(kind, str):
        problems.append(Problem((*where, "kind"), "missing" if kind is None else "kind", "a kind is a name"))
        return stand_in
    try:
        settings = registry.find(kind)
    except UnknownKind as error:
        problems.append(Problem((*where, "kind"), "kind", str(error)))
        return stand_in
    try:
        return settings.model_validate(raw)
    except ValidationError as error:
        for one in error.errors():
            loc = tuple(map(str, one["loc"]))
            known = _keys_at(settings, loc[:-1]) if one["type"] == "extra_forbidden" else ()
            problems.append(Problem((*where, *loc), one["type"], one["msg"], known))
        return stand_in


def _keys_at(settings: type[BaseModel], where: tuple[str, ...]) -> tuple[str, ...]:
    """Keys allowed at a key path within settings; none where it does not lead to settings."""
    for name in where:
        inner = settings.model_fields[name].annotation if name in settings.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return ()
        settings = inner
    return tuple(settings.model_fields)


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
