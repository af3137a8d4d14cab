"""The allow-list: what a recipe may send and write beyond its folder; and the list of what it names there.

Which key may go to which server, and where answers may lie, is said outside of any recipe, by environment variables,
which child processes know too.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import cache_folder, is_place, symbolic
from twinset.contracts.recipe.models import Recipe

KEYS = "TWINSET_KEYS"  # SERVER=VARIABLE,SERVER=VARIABLE
ANSWERS = "TWINSET_ANSWERS"  # folders, joined as in PATH
OPENAI_KEY = "OPENAI_API_KEY"
FREE = f"https://api.openai.com={OPENAI_KEY}"  # needs no word


def allow_key(url: str, variable: str) -> None:
    """Bind a variable to the server of a URL in this process and its children, since the operator names both."""
    bindings = [*os.environ.get(KEYS, "").split(","), f"{_origin(url)}={variable}"]
    os.environ[KEYS] = ",".join(dict.fromkeys(filter(None, bindings)))


def refuse_unbound_key(url: str, variable: str) -> None:
    """Raise `WrongUse` where the operator has not bound a variable to the scheme, host and port of a URL."""
    binding = f"{_origin(url)}={variable}"
    if binding not in (FREE, *os.environ.get(KEYS, "").split(",")):
        raise WrongUse(
            f"api_key_variable: the recipe would send the value of {variable} to {_origin(url)}, which nobody allowed "
            f"on this machine; if you trust that server with this key, set {KEYS}={binding}"
        )


def refuse_other_answers(key: str, place: Path, out: str) -> None:
    """Raise `WrongUse` where answers would be written outside of twinset's cache, OUT and what the operator names.

    key: of the setting, for the message. out: root of the dataset; a URL is none of this machine's folders.
    """
    roots = [str(cache_folder()), *filter(None, os.environ.get(ANSWERS, "").split(os.pathsep))]
    roots += [] if "://" in out else [out]
    if not any(Path(os.path.realpath(place)).is_relative_to(os.path.realpath(root)) for root in roots):
        raise WrongUse(
            f"{key}: the recipe would write answers to {place}, outside of OUT and twinset's cache; leave the setting "
            f"out, or allow it with {ANSWERS}={place} on every machine that builds"
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


#: What is named outside, in the order in which it is told, with the verb for it.
WORDS = {"reads": "reads", "writes": "writes", "hosts": "asks the host", "variables": "sends the value of"}


def outside(recipe: Recipe, folder: Path) -> dict[str, dict[str, list[str]]]:
    """What is named beyond a recipe's folder and installed packages, by key path for each of `WORDS`.

    Paths that it reads and writes, hosts that it asks, environment variables whose values it sends.
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
