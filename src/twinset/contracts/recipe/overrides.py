"""Plain values of a recipe before they are checked: ``KEY.PATH=VALUE`` put in place, ``same_as`` followed."""

from collections.abc import Mapping
from typing import Any

import yaml

from twinset.contracts.doors import problem_at
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Typed
from twinset.contracts.recipe.strict_yaml import load_yaml, value_at

PARTS = ("stages", "subsets")  # of a recipe: both hold stages by name
SAME_AS = "same_as"


def override(raw: dict[str, Any], setting: str) -> None:
    """Put one ``KEY.PATH=VALUE`` into a recipe; raises `WrongUse` when there is no such place."""
    keys, value = key_path(setting), setting.partition("=")[2]
    if not value or not all(keys):
        raise WrongUse(f"--set {setting!r}: write KEY.PATH=VALUE, as in --set subsets.eq-ag.source.skip=2")
    try:
        parsed = load_yaml(value)
    except (RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"--set {cut(repr(setting))}: {cut(repr(value))} is not a YAML value ({error})") from error
    if isinstance(parsed, str) and value[0] not in "\"'|>!":
        parsed = value  # a path may hold ` #`, which begins a comment
    here: Any = raw
    for depth, key in enumerate(keys):
        listed = isinstance(here, list) and value_at(here, [key]) is not None
        new_stage = isinstance(here, dict) and depth == 1 < len(keys) - 1 and keys[0] in PARTS and key not in here
        if new_stage or not (listed or isinstance(here, dict)):
            known = f"; the recipe has: {', '.join(map(str, here))}" if new_stage else ""
            raise WrongUse(f"--set {cut(setting)!r}: no {cut(key)!r} under {'.'.join(keys[:depth])}{known}")
        place: Any = int(key) if listed else key
        if depth == len(keys) - 1:
            here[place] = _typed(parsed)
        elif listed:
            here = here[place]
        else:
            if isinstance(here.get(key), bool):
                here[key] = {}  # settings of what was just switched on
            here = here.setdefault(key, {})


def _typed(value: Any) -> Any:
    """A value of ``--set``, all texts in it marked as `Typed`."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return Typed(value) if isinstance(value, str) else value


def key_path(setting: str) -> list[str]:
    """The key path of a ``--set``."""
    return setting.partition("=")[0].split(".")


def dereferenced(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe of plain values in which each ``{same_as: KEY.PATH}`` is the plain value, or list of such, at that path.

    Raises `pydantic.ValidationError`, also where a reference leads to another one.
    """

    def followed(value: Any, place: tuple[str | int, ...]) -> Any:
        if isinstance(value, list):
            return [followed(item, (*place, number)) for number, item in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        if value.keys() != {SAME_AS}:
            return {key: followed(item, (*place, key)) for key, item in value.items()}
        named = value_at(raw, str(value[SAME_AS]).split("."))
        if any(
            item is None or isinstance(item, Mapping | list) for item in (named if isinstance(named, list) else [named])
        ):
            problem = f"{SAME_AS}: {value[SAME_AS]} is not a plain value of the recipe; write the key path of one"
            raise problem_at(place, value, f"{problem}, such as subsets.bivlc.source.photos")
        return named

    return {key: followed(value, (key,)) for key, value in raw.items()}


def cut(text: str, most: int = 300) -> str:
    """A message quotes what it refuses, which can be as long as a file."""
    return text if len(text) <= most else f"{text[:most]}..."
