"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from manifests.candidate import SPLIT
from manifests.errors import WrongUse
from manifests.filter_settings import Filter
from manifests.locations import SMALL, is_model_folder, is_symbolic
from manifests.source_settings import Kubric, MediaSource, Settings, Source, StableDiffusion
from manifests.strict_yaml import MOST_BYTES, load_yaml

SHIPPED = Path(__file__).parent / "recipes"
LOCATIONS = (*MediaSource.locations, *Kubric.locations)
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
    count: int | None = Field(default=None, ge=1)
    shard_size: int = Field(default=256, ge=1)
    split: str = Field(default="test", pattern=SPLIT)
    pool: Literal["cpu", "render", "gpu"] = "cpu"

    @model_validator(mode="after")
    def _drawn_without_end(self) -> Subset:
        if self.source.drawn and self.count is None:
            raise ValueError("set count, the number of pairs to draw")
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
    _absolute(raw, base)
    settings = list(settings)
    for setting in settings:
        _override(raw, setting)
    subsets = raw.get("subsets")
    for name in subsets if isinstance(subsets, dict) else ():
        if not isinstance(name, str) or not SUBSET_NAME.fullmatch(name):
            shown, most = repr(name)[: LONGEST_NAME + 20], f"at most {LONGEST_NAME} characters"
            raise WrongUse(f"{path}: subset name {shown} must be lowercase words joined by dashes, {most}")
    try:
        return Recipe.model_validate(raw)
    except ValidationError as error:
        keys = [_spelled_out(setting.partition("=")[0].split(".")) for setting in settings]
        raise WrongUse("\n".join(_explain(path, keys, raw, problem) for problem in error.errors())) from error


def content_of(subset: Subset, seed: int) -> dict[str, Any]:
    """What of a subset's settings decides its shards' bytes: all but where its files lie, where it runs, how many."""
    settings = subset.model_dump(mode="json", exclude={"pool", "count"})
    for key in (*subset.source.locations, *subset.source.execution):
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


def _absolute(raw: Mapping[str, Any], base: Path) -> None:
    for subset in (raw.get("subsets") or {}).values() if isinstance(raw.get("subsets"), dict) else ():
        source = subset.get("source") if isinstance(subset, dict) else None
        for key in (*LOCATIONS, *StableDiffusion.models):
            if isinstance(source, dict) and isinstance(source.get(key), str):
                source[key] = _located(key, source[key], base)


def _located(key: str, value: str, base: Path) -> str:
    """A location of a source as a path of this machine; as it stands where it is none."""
    path = os.path.normpath(base / os.path.expanduser(value))
    if key in LOCATIONS:
        return value if is_symbolic(value) else path
    # As Hugging Face's libraries have it, a folder that is there comes before an id of the hub.
    return path if is_model_folder(value) or (value not in ("", SMALL) and os.path.isdir(path)) else value


def _override(raw: dict[str, Any], setting: str) -> None:
    key, equals, value = setting.partition("=")
    parts = _spelled_out(key.split("."))
    if not equals or not all(parts) or (parts[-1] in LOCATIONS and not value):
        raise WrongUse(f"--set {setting!r}: write KEY.PATH=VALUE, as in --set subsets.eq-ag.source.skip=2")
    try:
        parsed = load_yaml(value)
        setting.encode("utf-8")  # a location is taken as it stands, and must be text too
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"--set {_cut(repr(setting))}: {_cut(repr(value))} is not a YAML value ({error})") from error
    if "source" in parts and (parts[-1] in LOCATIONS or (parts[-1] in StableDiffusion.models and parsed is not None)):
        parsed = _located(parts[-1], value, Path.cwd())
    here: Any = raw
    for depth, part in enumerate(parts[:-1]):
        here = _step(here, part, setting, ".".join(parts[:depth]))
    if isinstance(here, list):
        _step(here, parts[-1], setting, ".".join(parts[:-1]))
        here[int(parts[-1])] = parsed
    elif isinstance(here, dict):
        here[parts[-1]] = parsed
    else:
        raise WrongUse(f"--set {setting!r}: {'.'.join(parts[:-1])} holds a value, not keys")


def _spelled_out(parts: list[str]) -> list[str]:
    """A key path of --set, in which ``subsets.NAME.model`` is short for ``subsets.NAME.source.model``."""
    short = len(parts) == 3 and parts[0] == "subsets" and parts[2] == "model"
    return [*parts[:2], "source", "model"] if short else parts


def _step(here: Any, part: str, setting: str, where: str) -> Any:
    if isinstance(here, dict):
        if part not in here and where == "subsets":
            raise WrongUse(f"--set {setting!r}: no subset {part!r}; the recipe has: {', '.join(here)}")
        return here.setdefault(part, {})
    # Not isdigit: that takes '²' for a digit, and int() does not.
    if isinstance(here, list) and part.isdecimal() and len(part) < 10 and int(part) < len(here):
        return here[int(part)]
    raise WrongUse(f"--set {setting!r}: there is no {part!r} under {where or 'the recipe'}")


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
    return f"{'--set ' if asked else f'{path}: '}{_cut('.'.join(place)) or 'recipe'}: {_cut(message)}{hint}"


def _cut(text: str, most: int = 300) -> str:
    """A message quotes what it refuses, which can be as long as a file."""
    return text if len(text) <= most else f"{text[:most]}..."


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
