"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

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
from twinset.contracts.recipe.allowed import allow_what_was_set
from twinset.contracts.recipe.models import Recipe
from twinset.contracts.recipe.overrides import cut, dereferenced, key_path, override
from twinset.contracts.recipe.strict_yaml import MOST_BYTES, load_yaml, value_at

SHIPPED = shipped("manifests") / "recipes"
RECIPES = "twinset.recipes"  # the group of entry points


class InvalidRecipe(WrongUse, ValueError):
    """A recipe that does not fit its models. problems: as pydantic reports them."""

    def __init__(self, error: ValidationError) -> None:
        # The pool is the source's own by default: where the source is wrong, that is said, and no more.
        self.problems = [one for one in error.errors() if one["type"] != "default_factory_not_called"]
        for problem in self.problems:
            problem["loc"] = tuple(part for part in problem["loc"] if part != "[key]")
        super().__init__("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in self.problems))


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with twinset, and of those that installed packages bring.

    An entry point of the group ``twinset.recipes`` names the folder that holds ``NAME.yaml``.
    """
    return sorted({*(path.stem for path in SHIPPED.glob("*.yaml")), *installed(RECIPES)})


def load_recipe(recipe: str, settings: Iterable[str] = ()) -> Recipe:
    """Load a recipe by shipped name or path, with ``KEY.PATH=VALUE`` overrides; raises `WrongUse` with the remedy.

    Relative paths count from the recipe's own folder; in shipped recipes and overrides, from the current folder.
    """
    path, base = _locate(recipe)
    settings = list(settings)
    try:
        with path.open("rb") as stream:
            raw = load_yaml(stream.read(MOST_BYTES + 1))
    except (OSError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: cannot be read as YAML ({error}); correct the file") from error
    if not isinstance(raw, dict):
        raise WrongUse(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")
    written = copy.deepcopy(raw)
    for setting in settings:
        override(raw, setting)
    if not raw.get("subsets") and not raw.get("stages"):
        raise WrongUse(f"{path}: subsets: missing; name at least one under the key subsets, or a stage under stages")
    try:
        loaded = parse_recipe(raw, base)
    except InvalidRecipe as error:
        keys = [key_path(setting) for setting in settings]
        raise WrongUse("\n".join(_explain(path, keys, problem) for problem in error.problems)) from error
    allow_what_was_set(loaded, settings)
    if recipe in shipped_recipes():
        _drop_claims(loaded, dereferenced(raw), written)
    return loaded


def _drop_claims(loaded: Recipe, raw: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """Drop what a shipped recipe says of a data set (``cites``, licence, credit) where ``--set`` names other files.

    These need not be of that data set; a command that sets the same ``cites`` of the stage too says that they are.
    raw: the recipe's plain values. written: those of its file alone.
    """
    for name, stage in loaded.all.items():
        key, source = loaded.key(name).split("."), stage.source
        values, cites = value_at(raw, key), value_at(written, [*key, "cites"])
        files = [file for file, place, _ in source.places() if place.what in ("file", "folder", "any")]
        restated = _is_typed(values, "cites") and values["cites"] == cites
        if restated or not any(_is_typed(values, f"source.{file}") for file in files):
            continue
        unset = {"licence": UNKNOWN if source.licence else "", "credit": "", "source_url": ""}
        terms = {term: value for term, value in unset.items() if not _is_typed(values, f"source.{term}")}
        claims = stage.cites if _is_typed(values, "cites") else ()
        home = loaded.stages if name in loaded.stages else loaded.subsets
        home[name] = stage.model_copy(update={"cites": claims, "source": source.model_copy(update=terms)})


def _is_typed(raw: Any, key: str) -> bool:
    """Whether ``--set`` gave a value, also by a reference."""
    value = value_at(raw, key.split("."))
    return any(isinstance(item, Typed) for item in (value if isinstance(value, list) else [value]))


def recipe_from_json(content: bytes) -> Recipe:
    """The recipe that a build recorded; raises ValueError, also when no installed package provides one of its kinds."""
    raw = json.loads(content)
    if not isinstance(raw, dict):
        raise ValueError("a recipe is a mapping")
    return parse_recipe(raw)


def parse_recipe(raw: Mapping[str, Any], base: Path | None = None) -> Recipe:
    """A recipe of plain values, sources and filters checked against their classes; raises `InvalidRecipe`.

    References are followed (`overrides.dereferenced`).
    base: the folder that relative paths count from; where there is none, they stay as they are.
    """
    try:
        return Recipe.model_validate(dereferenced(raw), context={"base": base})
    except ValidationError as error:
        raise InvalidRecipe(error) from error


def recipe_folder(recipe: str) -> Path:
    """The folder that relative paths of a recipe count from; raises `WrongUse` when there is no such recipe."""
    return _locate(recipe)[1]


def _locate(recipe: str) -> tuple[Path, Path]:
    names = shipped_recipes()
    if recipe in names:
        own = SHIPPED / f"{recipe}.yaml"
        return own if own.is_file() else Path(installed(RECIPES)[recipe].load()) / own.name, Path.cwd()
    path = Path(recipe)
    if path.is_file():
        return path, path.absolute().parent
    known = suggested(recipe, names).removesuffix("?")
    raise WrongUse(f"no recipe {recipe!r}: {known}, or give the path of a YAML file{MORE}")


def _explain(path: Path, keys: Sequence[Sequence[str]], problem: ErrorDetails) -> str:
    """One problem of a recipe as an instruction. keys: key paths that were given with --set."""
    place, message = [str(part) for part in problem["loc"]], problem["msg"]
    if problem["type"] == "missing":
        message = "missing; add it to the recipe or pass it with --set"
    # An unknown key can be one that leads to what was set.
    unknown = problem["type"] == "extra_forbidden"
    was_set = any(key == place[: len(key)] or (unknown and place == key[: len(place)]) for key in keys)
    return f"{'--set ' if was_set else f'{path}: '}{cut('.'.join(place)) or 'recipe'}: {cut(message)}"
