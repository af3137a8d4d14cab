"""Settings of a recipe before they are checked: ``KEY.PATH=VALUE`` put in place, locations as paths of this machine."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from twinset.contracts.doors import types_in
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import is_brought_model, is_model_folder, is_symbolic
from twinset.contracts.recipe.permissions import allow_answers, allow_key
from twinset.contracts.recipe.screening import ASKS, SCREENING
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.contracts.source import FILTERS, SOURCES, PlacedSettings

PARTS = ("stages", "subsets")  # of a recipe: both hold stages by name


def absolute(raw: Mapping[str, Any], base: Path) -> None:
    """Make the places of all sources and filters absolute paths; relative ones count from ``base``."""
    for part in PARTS:
        stages = raw.get(part)
        for stage in stages.values() if isinstance(stages, dict) else ():
            source, filters = (stage.get("source"), stage.get("filters")) if isinstance(stage, dict) else (None, None)
            for settings in (source, *(filters if isinstance(filters, list) else ())):
                if isinstance(settings, dict):
                    settings.update(_all_located(_class_of(settings), settings, base))
            screening = stage.get(SCREENING) if isinstance(stage, dict) else None
            if isinstance(screening, dict):
                screening.update(_all_located(SOURCES.find(ASKS), screening, base))


def _all_located(within: type[PlacedSettings] | None, raw: Mapping[str, Any], base: Path) -> dict[str, Any]:
    return {key: _located(within, key, value, base) for key, value in raw.items()}


def _located(within: type[PlacedSettings] | None, key: str, value: Any, base: Path) -> Any:
    """A place among settings of a class, or each of a list, as a path of this machine; any other value as it stands."""
    if within is None:
        return value
    if isinstance(value, list):
        return [_located(within, key, one, base) for one in value]
    if isinstance(value, dict):
        return _all_located(within.inner(key, value.get("kind")), value, base)
    what = within.leads_to(key)
    if what in ("", "server") or not isinstance(value, str) or not value:
        return value
    path = os.path.normpath(base / os.path.expanduser(value))
    if what == "stage":  # a name without a slash is a stage of the recipe
        return path if "/" in value and "://" not in value else value
    if what == "model":
        # As Hugging Face's libraries have it, a folder that is there comes before an id of the hub.
        return path if is_model_folder(value) or (not is_brought_model(value) and os.path.exists(path)) else value
    if what == "words":
        return path if is_model_folder(value) else value
    return value if is_symbolic(value) else path


def _class_of(raw: Mapping[str, Any]) -> type[PlacedSettings] | None:
    kind = raw.get("kind")
    for registry in (SOURCES, FILTERS) if isinstance(kind, str) else ():
        try:
            return registry.find(str(kind))
        except WrongUse:
            continue  # said when the recipe is checked
    return None


def override(raw: dict[str, Any], setting: str) -> None:
    """Put one ``KEY.PATH=VALUE`` into a recipe; raises `WrongUse` when there is no such place."""
    key, equals, value = setting.partition("=")
    parts = spelled_out(key.split("."))
    *where, last = parts
    here: Any = raw
    for depth, part in enumerate(where if equals and all(parts) else ()):
        here = _step(here, part, setting, ".".join(parts[:depth]))
    within = class_at(raw, where) if equals and all(parts) and isinstance(here, dict) else None
    what = within.leads_to(last) if within is not None else ""
    if not equals or not all(parts) or (what and not value):
        raise WrongUse(f"--set {setting!r}: write KEY.PATH=VALUE, as in --set subsets.eq-ag.source.skip=2")
    try:
        parsed = load_yaml(value)
        setting.encode("utf-8")  # a location is taken as it stands, and must be text too
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"--set {cut(repr(setting))}: {cut(repr(value))} is not a YAML value ({error})") from error
    # A share, where a setting is a share or a file.
    share = isinstance(parsed, float) and float in types_in(within and within.model_fields[last].annotation)
    if what and parsed is not None and not share:
        parsed = _located(within, last, parsed if isinstance(parsed, list | dict) else value, Path.cwd())
    if isinstance(here, list):
        _step(here, last, setting, ".".join(where))
        here[int(last)] = parsed
    elif isinstance(here, dict):
        here[last] = parsed
    else:
        raise WrongUse(f"--set {setting!r}: {'.'.join(where)} holds a value, not keys")


def allow_what_was_set(raw: Mapping[str, Any], settings: Sequence[str]) -> None:
    """Let the recipe use the keys and the places of answers that the operator wrote in ``KEY.PATH=VALUE``.

    Args:
        raw: the recipe with these settings in place, and without references.
    """
    paths = [spelled_out(one.partition("=")[0].split(".")) for one in settings]
    for path in paths:
        *where, last = path
        here: Any = raw
        for part in where:
            here = _step(here, part, ".".join(path), "")
        within = class_at(raw, where) if isinstance(here, dict) else None
        if within is not None:
            _allow(within, last, here, where, paths)
        elif (inner := class_at(raw, path)) is not None:
            for key in (given := here[int(last)] if isinstance(here, list) else here[last]):
                _allow(inner, key, given, path, paths)


def _allow(within: type[PlacedSettings], key: str, beside: Any, where: list[str], paths: list[list[str]]) -> None:
    """Allow what a setting names. beside: it and its neighbours; where: their key path; paths: all that were set."""
    value, server = beside[key], within.key_for(key)
    if value is None:
        return
    if server and server in beside:
        exactly = any([*where, server][: len(path)] == path for path in paths)
        allow_key(str(beside[server]), str(value), exactly)
    elif within.leads_to(key) in ("cache", "decisions"):
        allow_answers(str(value))
    elif isinstance(value, dict) and (inner := within.inner(key, value.get("kind"))) is not None:
        for one in value:
            _allow(inner, one, value, [*where, key], paths)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            if isinstance(one, dict) and (inner := within.inner(key, one.get("kind"))) is not None:
                for name in one:
                    _allow(inner, name, one, [*where, key, str(number)], paths)


def class_at(raw: Any, where: Sequence[str]) -> type[PlacedSettings] | None:
    """The class of the settings at a key path that leads into a source or filter; None where it is not one."""
    depth = {"source": 3, "filters": 4, SCREENING: 3}.get("".join(where[2:3]), 0)
    if not depth or len(where) < depth:
        return None
    here = raw
    for key in where[:depth]:
        here = _step(here, key, ".".join(where), "")
    known = {**here, "kind": ASKS} if isinstance(here, dict) and where[2] == SCREENING else here
    within, name = _class_of(known) if isinstance(known, dict) else None, ""
    for key in where[depth:]:
        name, here = key if isinstance(here, dict) else name, _step(here, key, ".".join(where), "")
        if isinstance(here, dict) and within is not None:
            within = within.inner(name, here.get("kind"))
    return within


def spelled_out(parts: list[str]) -> list[str]:
    """A key path of --set, in which ``subsets.NAME.model`` is short for ``subsets.NAME.source.model``."""
    short = len(parts) == 3 and parts[0] == "subsets" and parts[2] == "model"
    return [*parts[:2], "source", "model"] if short else parts


def _step(here: Any, part: str, setting: str, where: str) -> Any:
    if isinstance(here, dict):
        if part not in here and where in PARTS:
            raise WrongUse(f"--set {setting!r}: no {where[:-1]} {part!r}; the recipe has: {', '.join(here)}")
        if part == SCREENING and isinstance(here.get(part), bool):
            here[part] = {}  # settings of what is just switched on
        return here.setdefault(part, {})
    # Not isdigit: that takes '²' for a digit, and int() does not.
    if isinstance(here, list) and part.isdecimal() and len(part) < 10 and int(part) < len(here):
        return here[int(part)]
    raise WrongUse(f"--set {setting!r}: there is no {part!r} under {where or 'the recipe'}")


def cut(text: str, most: int = 300) -> str:
    """A message quotes what it refuses, which can be as long as a file."""
    return text if len(text) <= most else f"{text[:most]}..."
