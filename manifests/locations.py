"""Where the inputs of a recipe lie; ``miniature:NAME`` means a file of the built-in miniature, on whatever machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

MINIATURE = "miniature:"
MINIATURE_VERSION = 1  # raised with every change of what the miniature draws


def miniature_folder() -> Path:
    """Folder that the miniature is drawn into, once a machine: under ``$TWINSET_CACHE`` or ``~/.cache/twinset``."""
    cache = os.environ.get("TWINSET_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "twinset")
    return Path(cache) / f"miniature-{MINIATURE_VERSION}"


def is_miniature(path: Path) -> bool:
    """Whether a location belongs to the built-in miniature."""
    return path.is_relative_to(miniature_folder())


def _expand(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(MINIATURE):
        return str(miniature_folder() / value.removeprefix(MINIATURE))
    return value


def _collapse(path: Path) -> str:
    # A recipe travels to workers on other machines: there the miniature lies in their own cache.
    if is_miniature(path):
        return MINIATURE + path.relative_to(miniature_folder()).as_posix()
    return str(path)


Location = Annotated[Path, BeforeValidator(_expand), PlainSerializer(_collapse, return_type=str)]
