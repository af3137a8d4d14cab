"""Settings of a recipe before they are checked: ``KEY.PATH=VALUE`` put in place, locations as paths of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from manifests.errors import WrongUse
from manifests.genecis_settings import AttributeTemplates, Triplets
from manifests.locations import SMALL, is_model_folder, is_symbolic
from manifests.media_source import MediaSource
from manifests.source_settings import Kubric, StableDiffusion
from manifests.strict_yaml import load_yaml

LOCATIONS = (
    *MediaSource.locations,
    *Kubric.locations,
    *AttributeTemplates.locations,
    *("captions", "concreteness", "images"),
)
MODELS = (*StableDiffusion.models, *Triplets.models)
ABSENT = ("backgrounds", "images")  # locations that can be left out


def absolute(raw: Mapping[str, Any], base: Path) -> None:
    """Make the locations of every subset's source absolute; relative ones count from ``base``."""
    for subset in (raw.get("subsets") or {}).values() if isinstance(raw.get("subsets"), dict) else ():
        source = subset.get("source") if isinstance(subset, dict) else None
        for key in (*LOCATIONS, *MODELS):
            if isinstance(source, dict) and source.get(key) is not None:
                source[key] = _located(key, source[key], base)


def _located(key: str, value: Any, base: Path) -> Any:
    """A location of a source, or each of a list, as a path of this machine; as it stands where it is none."""
    if isinstance(value, list):
        return [_located(key, one, base) for one in value]
    if not isinstance(value, str):
        return value
    path = os.path.normpath(base / os.path.expanduser(value))
    if key in LOCATIONS:
        return value if is_symbolic(value) else path
    # As Hugging Face's libraries have it, a folder that is there comes before an id of the hub.
    return path if is_model_folder(value) or (value not in ("", SMALL) and os.path.isdir(path)) else value


def override(raw: dict[str, Any], setting: str) -> None:
    """Put one ``KEY.PATH=VALUE`` into a recipe; raises `WrongUse` when there is no such place."""
    key, equals, value = setting.partition("=")
    parts = spelled_out(key.split("."))
    if not equals or not all(parts) or (parts[-1] in LOCATIONS and not value):
        raise WrongUse(f"--set {setting!r}: write KEY.PATH=VALUE, as in --set subsets.eq-ag.source.skip=2")
    try:
        parsed = load_yaml(value)
        setting.encode("utf-8")  # a location is taken as it stands, and must be text too
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"--set {cut(repr(setting))}: {cut(repr(value))} is not a YAML value ({error})") from error
    named = parts[-1] in (*LOCATIONS, *MODELS) and not (parsed is None and parts[-1] in (*MODELS, *ABSENT))
    if "source" in parts and named:
        parsed = _located(parts[-1], parsed if isinstance(parsed, list) else value, Path.cwd())
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


def spelled_out(parts: list[str]) -> list[str]:
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


def cut(text: str, most: int = 300) -> str:
    """A message quotes what it refuses, which can be as long as a file."""
    return text if len(text) <= most else f"{text[:most]}..."
