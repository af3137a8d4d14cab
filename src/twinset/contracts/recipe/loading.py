"""From a YAML file, and what ``--set`` changes of it, to a recipe that is checked; every error names its place."""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from twinset.contracts.doors import MORE, installed
from twinset.contracts.errors import WrongUse, suggested
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.locations import Typed, shipped
from twinset.contracts.recipe.models import PARTS, Recipe
from twinset.contracts.recipe.strict_yaml import MOST_BYTES, load_yaml, value_at

SHIPPED = shipped("manifests") / "recipes"
RECIPES = "twinset.recipes"  # the group of entry points
MOST_QUOTED = 300  # characters


class InvalidRecipe(WrongUse, ValueError):
    """A recipe that does not fit its models. problems: as pydantic reports them."""

    def __init__(self, error: ValidationError) -> None:
        # The pool is the source's own by default: where the source is wrong, that is said, and no more.
        self.problems = [problem for problem in error.errors() if problem["type"] != "default_factory_not_called"]
        for problem in self.problems:
            problem["loc"] = tuple(part for part in problem["loc"] if part != "[key]")
        lines = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in self.problems)
        super().__init__("; ".join(lines))


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with twinset, and of those that installed packages bring.

    An entry point of the group ``twinset.recipes`` names the folder that holds ``NAME.yaml``.
    """
    return sorted({*(path.stem for path in SHIPPED.glob("*.yaml")), *installed(RECIPES)})


def load_recipe(recipe: str, settings: Iterable[str] = ()) -> Recipe:
    """Load a recipe by shipped name or path, with ``KEY.PATH=VALUE`` overrides; raises `WrongUse` with the remedy.

    Relative paths count from the recipe's own folder; in shipped recipes and overrides, from the current folder.
    """
    path, base = locate(recipe)
    try:
        with path.open("rb") as stream:
            raw = load_yaml(stream.read(MOST_BYTES + 1))
    except (OSError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: cannot be read as YAML ({error}); correct the file") from error
    if not isinstance(raw, dict):
        raise WrongUse(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")
    written = copy.deepcopy(raw)
    keys = [override(raw, setting) for setting in settings]
    if not raw.get("subsets") and not raw.get("stages"):
        raise WrongUse(f"{path}: subsets: missing; name at least one under the key subsets, or a stage under stages")
    try:
        loaded = parse_recipe(raw, base)
    except InvalidRecipe as error:
        raise WrongUse("\n".join(_explain(path, keys, problem) for problem in error.problems)) from error
    if recipe in shipped_recipes():
        _drop_claims(loaded, keys, written)
    return loaded


def recipe_from_json(content: bytes) -> Recipe:
    """The recipe that a build recorded; raises ValueError, also when no installed package provides one of its kinds."""
    return parse_recipe(json.loads(content))


def parse_recipe(raw: Mapping[str, Any], base: Path | None = None) -> Recipe:
    """A recipe of plain values, sources and filters checked against their classes; raises `InvalidRecipe`.

    base: the folder that relative paths count from; where there is none, they stay as they are.
    """
    try:
        return Recipe.model_validate(raw, context={"base": base})
    except ValidationError as error:
        raise InvalidRecipe(error) from error


def locate(recipe: str) -> tuple[Path, Path]:
    """The file of a recipe, and the folder that its paths count from; raises `WrongUse` when there is none."""
    names = shipped_recipes()
    if recipe in names:
        own = SHIPPED / f"{recipe}.yaml"
        return own if own.is_file() else Path(installed(RECIPES)[recipe].load()) / own.name, Path.cwd()
    path = Path(recipe)
    if path.is_file():
        return path, path.absolute().parent
    known = suggested(recipe, names).removesuffix("?")
    raise WrongUse(f"no recipe {recipe!r}: {known}, or give the path of a YAML file{MORE}")


def override(raw: dict[str, Any], setting: str) -> list[str]:
    """Put one ``KEY.PATH=VALUE`` into a recipe; gives its key path. Raises `WrongUse` when there is no such place."""
    path, _, value = setting.partition("=")
    keys = path.split(".")
    if not value or not all(keys):
        raise WrongUse(f"--set {setting!r}: write KEY.PATH=VALUE, as in --set subsets.eq-ag.source.skip=2")
    try:
        parsed = load_yaml(value)
    except (RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"--set {_cut(repr(setting))}: {_cut(repr(value))} is not a YAML value ({error})") from error
    if isinstance(parsed, str) and value[0] not in "\"'|>!":
        parsed = value  # a path may hold ` #`, which begins a comment
    here: Any = raw
    for depth, key in enumerate(keys):
        listed, last = isinstance(here, list) and value_at(here, [key]) is not None, depth == len(keys) - 1
        new_stage = isinstance(here, dict) and depth == 1 and not last and keys[0] in PARTS and key not in here
        if new_stage or not (listed or isinstance(here, dict)):
            known = f"; the recipe has: {', '.join(map(str, here))}" if new_stage else ""
            raise WrongUse(f"--set {_cut(setting)!r}: no {_cut(key)!r} under {'.'.join(keys[:depth])}{known}")
        place: Any = int(key) if listed else key
        if last:
            here[place] = _typed(parsed)
        elif isinstance(value_at(here, [key]), bool | None):
            here[place] = {}  # settings of what is not there, or was just switched on
        here = here[place]
    return keys


def _typed(value: Any) -> Any:
    """A value of ``--set``, all texts in it marked as `Typed`."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return Typed(value) if isinstance(value, str) else value


def _drop_claims(loaded: Recipe, keys: Sequence[list[str]], written: Mapping[str, Any]) -> None:
    """Drop what a shipped recipe says of a data set (``cites``, licence, credit) where ``--set`` names other files.

    These need not be of that data set; a command that sets the same ``cites`` of the stage too says that they are.
    keys: key paths that were set. written: the values of the recipe's file.
    """
    for name, stage in loaded.all.items():
        key, source = loaded.key(name), stage.source
        files = [file for file, place, _ in source.places() if place.what in ("file", "folder", "any")]
        cited = _was_set(keys, f"{key}.cites")
        restated = cited and list(stage.cites) == value_at(written, [*key.split("."), "cites"])
        if restated or not any(_was_set(keys, f"{key}.source.{file}") for file in files):
            continue
        unset = {"licence": UNKNOWN if source.licence else "", "credit": "", "source_url": ""}
        terms = {term: value for term, value in unset.items() if not _was_set(keys, f"{key}.source.{term}")}
        claims = {"cites": stage.cites if cited else (), "source": source.model_copy(update=terms)}
        (loaded.stages if name in loaded.stages else loaded.subsets)[name] = stage.model_copy(update=claims)


def _was_set(keys: Sequence[list[str]], path: str) -> bool:
    """Whether ``--set`` gave a value, what holds it, or a part of it."""
    place = path.split(".")
    return any(key == place[: len(key)] or place == key[: len(place)] for key in keys)


def _explain(path: Path, keys: Sequence[list[str]], problem: ErrorDetails) -> str:
    """One problem of a recipe as an instruction. keys: key paths that were given with --set."""
    place, message = ".".join(map(str, problem["loc"])), problem["msg"]
    if problem["type"] == "missing":
        message = "missing; add it to the recipe or pass it with --set"
    unknown = problem["type"] == "extra_forbidden"  # a key that only leads to what was set; else that is the file's
    blamed = [key for key in keys if unknown or len(key) <= len(problem["loc"])]
    return f"{'--set ' if _was_set(blamed, place) else f'{path}: '}{_cut(place) or 'recipe'}: {_cut(message)}"


def _cut(text: str) -> str:
    """A message quotes what it refuses, which can be as long as a file."""
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."
