"""The allow-list: what a recipe may read, send and write beyond what lies in its folder.

Which key may go to which server, and where answers may lie, is said outside of it: by ``--set`` or by environment
variables. ``--set`` is put into the environment, so that child processes know it and no recorded recipe does.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import LOOPBACK, cache_folder, is_place, symbolic
from twinset.contracts.recipe.models import DECISIONS, Recipe
from twinset.contracts.recipe.overrides import key_path

KEYS = "TWINSET_KEYS"  # HOST=VARIABLE,HOST=VARIABLE
ANSWERS = "TWINSET_ANSWERS"  # folders, joined as in PATH
OPENAI_KEY = "OPENAI_API_KEY"
FREE = f"https://api.openai.com={OPENAI_KEY}"  # needs no word


def allow_what_was_set(recipe: Recipe, settings: Sequence[str]) -> None:
    """Allow the keys and the places of answers that the operator wrote in ``KEY.PATH=VALUE``."""
    paths = [_expanded(key_path(setting)) for setting in settings]
    places = {key: (mark.what, str(value)) for key, mark, value in recipe.places()}
    was_set = {key for key in places if any(key.split(".")[: len(path)] == path for path in paths)}
    for key in was_set:
        what, value = places[key]
        if what in ("cache", "decisions"):
            _add(ANSWERS, os.path.abspath(value), os.pathsep)
        elif what == "variable":
            for server, (beside, url) in places.items():
                if beside == "server" and server.rpartition(".")[0] == key.rpartition(".")[0]:
                    allow_key(url, value, exactly=server in was_set)


def _expanded(path: list[str]) -> list[str]:
    """A key path where ``screening`` is the stage that it is short for."""
    return ["stages", f"{path[1]}{DECISIONS}", "source", *path[3:]] if path[2:3] == ["screening"] else path


def allow_key(url: str, variable: str, exactly: bool = True) -> None:
    """Bind a variable to the server of a URL in this process and its children, since the operator names both.

    exactly: whether the operator named the URL too; else plain http is allowed to this machine alone.
    """
    server = _origin(url) if exactly else urlsplit(url).netloc.lower()
    _add(KEYS, f"{server}={variable}", ",")


def refuse_unbound_key(url: str, variable: str) -> None:
    """Raise `WrongUse` where the operator has not bound a variable to the server of a URL.

    Plain http is allowed to this machine, and where the binding says ``http://``.
    """
    parts = urlsplit(url)
    host, netloc = parts.hostname or "", parts.netloc.lower()
    safe = parts.scheme == "https" or host in LOOPBACK
    names = {_origin(url), *((host, f"[{host}]", netloc) if safe else ())}
    bindings = (binding.strip().rpartition("=") for binding in (FREE, *os.environ.get(KEYS, "").split(",")))
    if not any(server.lower() in names and bound == variable for server, _, bound in bindings):
        raise WrongUse(
            f"api_key_variable: the recipe would send the value of {variable} to {_origin(url)}, which nobody allowed "
            f"on this machine; if you trust that server with this key, set {KEYS}="
            f"{netloc if safe else _origin(url)}={variable}"
        )


def refuse_other_answers(key: str, place: Path, out: str) -> None:
    """Raise `WrongUse` where answers would be written outside of twinset's cache, OUT and what the operator names.

    key: of the setting, for the message. out: root of the dataset; a URL is none of this machine's folders.
    """
    allowed = [folder for folder in os.environ.get(ANSWERS, "").split(os.pathsep) if folder]
    roots = [str(cache_folder()), *allowed, *([] if "://" in out else [out])]
    real = os.path.realpath(place)
    if not any(Path(real).is_relative_to(os.path.realpath(root)) for root in roots):
        raise WrongUse(
            f"{key}: the recipe would write answers to {place}, outside of OUT and twinset's cache; leave the setting "
            f"out, allow it with --set {key}={place}, or with {ANSWERS}={place} on every machine that builds"
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _add(variable: str, value: str, between: str) -> None:
    known = [item for item in os.environ.get(variable, "").split(between) if item]
    if value not in known:
        os.environ[variable] = between.join([*known, value])


#: What is named outside, in the order in which it is told, with the verb for it.
WORDS = {"reads": "reads", "writes": "writes", "hosts": "asks the host", "variables": "sends the value of"}


def outside(recipe: Recipe, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Paths that a recipe reads and writes, hosts that it asks, environment variables whose values it sends.

    Args:
        folder: of the recipe; what lies in it is left out, as is what installed packages bring.

    Returns:
        For each of `WORDS`, what is named by key path.
    """
    named: dict[str, dict[str, list[str]]] = {what: {} for what in WORDS}
    for key, mark, value in recipe.places():
        what, place = {"cache": "writes", "variable": "variables"}.get(mark.what, "reads"), str(value)
        if "://" in place:
            what, place = "hosts", _origin(place)
        elif what != "variables":
            inside = Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
            if inside or is_place(symbolic(Path(place))) or (mark.what == "stage" and "/" not in place):
                continue
        named[what].setdefault(key, []).append(place)
    return named


def in_words(named: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """A line for each thing that `outside` lists."""
    for what, by_key in named.items():
        for key, values in by_key.items():
            yield from (f"{WORDS[what]} {value} ({key})" for value in values)
