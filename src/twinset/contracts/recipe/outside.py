"""What a recipe names outside of its own folder: to be read by whoever runs it, before anything is opened."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from twinset.contracts.doors import marks
from twinset.contracts.locations import is_place, symbolic
from twinset.contracts.recipe.models import Recipe
from twinset.contracts.source import PlacedSettings, Reads

#: What is named outside, in the order in which it is told, with the verb for it.
WORDS = {"reads": "reads", "writes": "writes", "hosts": "asks the host", "variables": "sends the value of"}


def outside(recipe: Recipe, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Paths that a recipe reads and writes, hosts that it asks, environment variables whose values it sends.

    Args:
        folder: of the recipe; what lies in it is left out, as is what installed packages bring.

    Returns:
        For each of `WORDS`, what is named by key path.
    """
    found: dict[str, dict[str, list[str]]] = {what: {} for what in WORDS}
    home = os.path.realpath(folder)
    for name in recipe.all:
        parts = {"source": recipe[name].source, **{f"filters.{n}": one for n, one in enumerate(recipe[name].filters)}}
        for part, settings in parts.items():
            for setting, what, value in _named(settings):
                if "://" in value:
                    what, value = "hosts", f"{urlsplit(value).scheme}://{urlsplit(value).netloc}"
                elif what != "variables" and _is_within(value, home):
                    continue
                found[what].setdefault(f"{recipe.key(name)}.{part}.{setting}", []).append(value)
    return found


def _is_within(path: str, home: str) -> bool:
    return is_place(symbolic(Path(path))) or Path(os.path.realpath(path)).is_relative_to(home)


def _named(settings: PlacedSettings) -> Iterator[tuple[str, str, str]]:
    """Key path, kind and value of all that settings name: paths, URLs, variables."""
    for setting, mark, value in settings.places():
        yield setting, "writes" if mark.what == "cache" else "reads", str(value)
    for setting in marks(type(settings), Reads):
        if "/" in (stage := getattr(settings, setting) or ""):
            yield setting, "reads", stage
    for setting, variable, _ in settings.server_keys():
        yield setting, "variables", variable


def in_words(found: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    """A line for each thing that `outside` found."""
    for what, by_key in found.items():
        for key, values in by_key.items():
            yield from (f"{WORDS[what]} {value} ({key})" for value in values)
