"""Recipes: what a build is asked to make, as YAML checked against typed models before any work starts."""

import copy
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from twinset.contracts.doors import installed, where_others_are
from twinset.contracts.errors import WrongUse, suggested
from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.locations import shipped
from twinset.contracts.recipe.models import LONGEST_NAME, SUBSET_NAME, Recipe, Subset
from twinset.contracts.recipe.overrides import PARTS, absolute, allow_what_was_set, class_at, cut, override, spelled_out
from twinset.contracts.recipe.screening import SCREENING, as_written, expanded
from twinset.contracts.recipe.strict_yaml import MOST_BYTES, load_yaml

SAME_AS = "same_as"
Place = tuple[int | str, ...]  # of a value: keys and places in lists
MOST_STEPS = 10  # from a reference to a reference
MOST_FOLLOWED = 10_000  # in a recipe: lists of references to lists of references would fill the memory


def dereferenced(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recipe of plain values in which each reference is the value that it names.

    Raises `pydantic.ValidationError` when there is no such setting, or references lead in a circle.
    """
    left = iter(range(MOST_FOLLOWED))
    return {key: _within(value, raw, (key,), left) for key, value in raw.items()}


def _within(value: Any, raw: Mapping[str, Any], place: Place, left: Iterator[int], steps: int = 0) -> Any:
    """A value without references. left: references that may still be followed; steps: those that led here."""
    if isinstance(value, list):
        return [_within(one, raw, (*place, number), left, steps) for number, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if value.keys() != {SAME_AS}:
        return {key: _within(one, raw, (*place, key), left, steps) for key, one in value.items()}
    if next(left, None) is None:
        raise _wrong(place, value, f"same_as is followed more than {MOST_FOLLOWED:,} times; write some values out")
    if steps == MOST_STEPS:
        raise _wrong(place, value, f"{value[SAME_AS]} leads back to itself; write the value in one place")
    return _within(_value_at(value[SAME_AS], raw, place), raw, place, left, steps + 1)


def _value_at(path: Any, raw: Mapping[str, Any], place: Place) -> Any:
    here: Any = raw
    for key in path.split(".") if isinstance(path, str) else ():
        if isinstance(here, list) and key.isdecimal() and len(key) < 10 and int(key) < len(here):
            here = here[int(key)]
        elif isinstance(here, Mapping) and key in here and here.keys() != {SAME_AS}:
            here = here[key]
        else:
            raise _wrong(place, path, f"same as {path}, which the recipe does not set; correct the key path")
    if here is raw or (isinstance(here, Mapping) and here.keys() != {SAME_AS}):
        raise _wrong(place, path, "same_as names one setting, such as subsets.bivlc.source.photos; write its key path")
    return here


def _wrong(place: Place, value: Any, problem: str) -> ValidationError:
    # Braces are the placeholders of pydantic's templates.
    error = PydanticCustomError("same_as", problem.replace("{", "(").replace("}", ")"))
    return ValidationError.from_exception_data("Recipe", [{"type": error, "loc": place, "input": value}])


SHIPPED = shipped("manifests") / "recipes"
RECIPES = "twinset.recipes"  # the group of entry points


class InvalidRecipe(WrongUse, ValueError):
    """A recipe that does not fit its models. problems: as pydantic reports them, those of sources and filters first."""

    def __init__(self, error: ValidationError, raw: Mapping[str, Any]) -> None:
        # The pool is the source's own by default: where the source is wrong, that is said, and no more.
        # Nor that a tuple is too short, where all that it holds is wrong.
        every = error.errors()
        vain = {("too_short", one["loc"][:depth]) for one in every for depth in range(len(one["loc"]))}
        problems = [
            one
            for one in every
            if one["type"] != "default_factory_not_called" and (one["type"], one["loc"]) not in vain
        ]
        for one in problems:
            one["loc"] = as_written(raw, one["loc"])
        self.problems = sorted(problems, key=lambda one: one["loc"][2:3] not in (("source",), ("filters",)))
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
    try:
        with path.open("rb") as stream:
            raw = load_yaml(stream.read(MOST_BYTES + 1))
    except (OSError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: cannot be read as YAML ({error}); correct the file") from error
    if not isinstance(raw, dict):
        raise WrongUse(f"{path}: a recipe is a mapping with the keys {', '.join(Recipe.model_fields)}")
    absolute(raw, base)
    settings = list(settings)
    shipped = _as_it_stands(raw) if settings and recipe in shipped_recipes() else None
    for setting in settings:
        override(raw, setting)
    for name in (name for part in PARTS if isinstance(raw.get(part), dict) for name in raw[part]):
        if not isinstance(name, str) or not SUBSET_NAME.fullmatch(name):
            shown, most = repr(name)[: LONGEST_NAME + 20], f"at most {LONGEST_NAME} characters"
            raise WrongUse(f"{path}: subset name {shown} must be lowercase words joined by dashes, {most}")
    if not raw.get("subsets") and not raw.get("stages"):
        raise WrongUse(f"{path}: subsets: missing; name at least one under the key subsets, or a stage under stages")
    try:
        loaded = parse_recipe(raw)
        allow_what_was_set(dereferenced(raw), settings)
        return loaded if shipped is None else _of_other_files(loaded, shipped, settings)
    except InvalidRecipe as error:
        keys = [spelled_out(setting.partition("=")[0].split(".")) for setting in settings]
        raise WrongUse("\n".join(_explain(path, keys, raw, problem) for problem in error.problems)) from error


def _as_it_stands(raw: Any) -> Recipe | None:
    """A recipe before anything is set; None for one that needs settings."""
    try:
        return parse_recipe(copy.deepcopy(raw))
    except InvalidRecipe:
        return None


def _of_other_files(loaded: Recipe, shipped: Recipe, settings: Iterable[str]) -> Recipe:
    """Without what a shipped recipe says of a data set (``cites``, licence, credit) where ``--set`` names other files.

    These need not be of that data set; a command that sets the same ``cites`` of the stage too says that they are."""
    keys = {one.partition("=")[0] for one in settings}

    def unclaimed(name: str, used: Subset) -> Subset:
        written = used.known_as if used.known_as in shipped.all else name  # of a screened subset
        key, source, before = shipped.key(written), used.source, shipped.all.get(written, used)
        cites = used.cites if (restated := f"{key}.cites" in keys) else ()
        stays = (restated and cites == before.cites) or _files(used) == _files(before)
        if stays or keys & {key.partition(".")[0], key}:
            return used
        unset = {"licence": UNKNOWN if source.licence else "", "credit": "", "source_url": ""}
        terms = {term: value for term, value in unset.items() if not keys & {f"{key}.source", f"{key}.source.{term}"}}
        return used.model_copy(update={"cites": cites, "source": source.model_copy(update=terms)})

    every = {part: {name: unclaimed(name, one) for name, one in getattr(loaded, part).items()} for part in PARTS}
    return loaded.model_copy(update=every)


def _files(used: Subset) -> list[Any]:
    return [one for one in used.source.places() if one[1].what in ("file", "folder", "any")]


def recipe_from_json(content: bytes) -> Recipe:
    """The recipe that a build recorded; raises ValueError, also when no installed package provides one of its kinds."""
    raw = json.loads(content)
    if not isinstance(raw, dict):
        raise ValueError("a recipe is a mapping")
    return parse_recipe(raw)


def parse_recipe(raw: Mapping[str, Any]) -> Recipe:
    """A recipe of plain values, sources and filters checked against their classes; raises `InvalidRecipe`.

    References are followed (`contracts.recipe.loading`), and ``screening`` of a subset is written out as stages
    (`contracts.recipe.screening`).
    """
    try:
        return Recipe.model_validate(expanded(dereferenced(raw)))
    except ValidationError as error:
        raise InvalidRecipe(error, raw) from error


def recipe_folder(recipe: str) -> Path:
    """The folder that relative paths of a recipe count from; raises `WrongUse` when there is no such recipe."""
    return _locate(recipe)[1]


def _locate(recipe: str) -> tuple[Path, Path]:
    shipped = shipped_recipes()
    if recipe in shipped:
        own = SHIPPED / f"{recipe}.yaml"
        return own if own.is_file() else Path(installed(RECIPES)[recipe].load()) / own.name, Path.cwd()
    path = Path(recipe)
    if path.is_file():
        return path, path.absolute().parent
    known = f"{suggested(recipe, shipped).removesuffix('?')}, or give the path of a YAML file"
    raise WrongUse(f"no recipe {recipe!r}: {known}{where_others_are()}")


def _explain(path: Path, keys: list[list[str]], raw: Mapping[str, Any], problem: ErrorDetails) -> str:
    """One problem of a recipe as an instruction. keys: key paths that were given with --set."""
    place, message, hint = _key_path(raw, problem["loc"]), problem["msg"], ""
    unknown = problem["type"] == "extra_forbidden"
    if unknown:
        known = sorted(_known_keys(raw, place[:-1]))
        near = difflib.get_close_matches(place[-1], known, n=1)
        message = "unknown key"
        hint = f"; did you mean {near[0]!r}?" if near else f"; known keys: {', '.join(known)}" if known else ""
    elif problem["type"] == "missing":
        message, hint = "missing", "; add it to the recipe or pass it with --set"
    # An unknown key can be one that leads to what was set.
    asked = any(key == place[: len(key)] or (unknown and place == key[: len(place)]) for key in keys)
    return f"{'--set ' if asked else f'{path}: '}{cut('.'.join(place)) or 'recipe'}: {cut(message)}{hint}"


def _key_path(raw: Any, loc: Iterable[str | int]) -> list[str]:
    """Where a problem is, without the kind that pydantic adds where settings are one of several kinds."""
    path, here = list[str](), raw
    for part in loc:
        if isinstance(here, dict) and part not in here and here.get("kind") == part:
            continue
        path.append(str(part))
        there = isinstance(here, dict) and part in here
        there |= isinstance(here, list) and isinstance(part, int) and part < len(here)
        here = here[part] if there else None
    return path


def _known_keys(raw: Any, where: Sequence[str]) -> Iterable[str]:
    """Keys allowed at a key path of a recipe; none where it does not lead to settings."""
    settings: type[BaseModel] = Recipe
    inner: Sequence[str] = where
    match where:
        case (_, _, *rest):
            settings, inner = Subset, rest
    # Below a kind, of the settings of that kind.
    for length in range(len(where), 0, -1):
        if (placed := class_at(raw, where[:length])) is not None:
            settings, inner = placed, where[length:]
            break
    for key in inner:
        field = settings.model_fields.get(key)
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return ()
        settings = field.annotation
    return {*settings.model_fields, *([SCREENING] if len(where) == 2 and where[0] == "subsets" else [])}
