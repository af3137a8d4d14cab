"""What the operator allows recipes to do beyond reading what they name: keys for servers, folders for answers.

A recipe comes from others. What it may send where is said outside of it: by ``--set``, by environment variables, or in
``twinset.toml``. ``--set`` is put into the environment, so that child processes know it and no recorded recipe does.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from twinset.contracts.doors import marks
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import cache_folder, is_loopback, is_place, symbolic
from twinset.contracts.recipe.models import Recipe
from twinset.contracts.source import PlacedSettings, Reads

KEYS = "TWINSET_KEYS"  # HOST=VARIABLE,HOST=VARIABLE
ANSWERS = "TWINSET_ANSWERS"  # folders, joined as in PATH
OPENAI_HOST, OPENAI_KEY = "api.openai.com", "OPENAI_API_KEY"  # need no word
_BINDING = re.compile(r"(?:(https?)://)?([\w.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?=([A-Za-z_][A-Za-z0-9_]*)")
_FORM = "write HOST=VARIABLE, or http://HOST:PORT=VARIABLE for a server without TLS"
_PORTS = {"http": 80, "https": 443}


class Binding(NamedTuple):
    """A server and the environment variable whose value it may be sent. scheme, port: empty and None for any."""

    scheme: str
    host: str
    port: int | None
    variable: str

    def covers(self, url: str, variable: str) -> bool:
        """Whether it allows a key for a URL. Without a scheme it does not for plain http, but to this machine."""
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        scheme = self.scheme or ("https" if not is_loopback(self.host) else parts.scheme)
        wanted = self.port or (_PORTS[self.scheme] if self.scheme else port)
        named = (scheme, self.host, wanted, self.variable)
        return named == (parts.scheme, parts.hostname, port, variable)


def allow_key(url: str, variable: str, exactly: bool = True) -> None:
    """Bind a variable to the server of a URL in this process and its children, since the operator names both.

    exactly: whether the operator named the URL too; else plain http is allowed to this machine alone.
    """
    parts = urlsplit(url)
    scheme = f"{parts.scheme}://" if exactly else ""
    _add(KEYS, f"{scheme}{parts.netloc.lower()}={variable}", ",")


def refuse_unbound_key(url: str, variable: str) -> None:
    """Raise `WrongUse` where the operator has not bound a variable to the server of a URL."""
    free = Binding("https", OPENAI_HOST, None, OPENAI_KEY)
    if any(one.covers(url, variable) for one in (free, *_bindings())):
        return
    parts = urlsplit(url)
    server = parts.netloc.lower() if parts.scheme == "https" or is_loopback(parts.hostname or "") else _origin(url)
    raise WrongUse(
        f"api_key_variable: the recipe would send the value of {variable} to {_origin(url)}, which nobody allowed on "
        f"this machine; if you trust that server with this key, set {KEYS}={server}={variable}"
    )


def allow_answers(place: str) -> None:
    """Allow answers in a file or folder, in this process and its children, since the operator names it."""
    _add(ANSWERS, os.path.abspath(os.path.expanduser(place)), os.pathsep)


def refuse_other_answers(key: str, place: Path, out: str) -> None:
    """Raise `WrongUse` where answers would be written outside of twinset's cache, OUT and what the operator names.

    Args:
        key: of the setting, for the message.
        out: root of the dataset; a URL is none of this machine's folders.
    """
    named = [one for one in os.environ.get(ANSWERS, "").split(os.pathsep) if one]
    roots = [str(cache_folder()), *named, *([] if "://" in out else [out])]
    real = os.path.realpath(place)
    if not any(Path(real).is_relative_to(os.path.realpath(one)) for one in roots):
        raise WrongUse(
            f"{key}: the recipe would write answers to {place}, outside of OUT and twinset's cache; leave the setting "
            f"out, allow it with --set {key}={place}, or with {ANSWERS}={place} on every machine that builds"
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _add(variable: str, value: str, between: str) -> None:
    known = [one for one in os.environ.get(variable, "").split(between) if one]
    if value not in known:
        os.environ[variable] = between.join([*known, value])


def _bindings() -> Iterator[Binding]:
    """Those of the environment, then those of the user's ``twinset.toml``."""
    for text in os.environ.get(KEYS, "").split(","):
        if text.strip():
            yield _binding(text.strip(), KEYS)
    path = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "twinset.toml"
    try:
        keys = tomllib.loads(path.read_text("utf-8")).get("keys", {})
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise WrongUse(f"{path}: cannot be read as TOML ({error}); correct the file") from error
    for server, variable in _flat(keys):
        yield _binding(f"{server}={variable}", str(path))


def _flat(table: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Entries of a TOML table; a host without quotes is read as tables within tables."""
    if not isinstance(table, Mapping):
        yield above, table
        return
    for name, value in table.items():
        yield from _flat(value, f"{above}.{name}" if above else name)


def _binding(text: str, where: str) -> Binding:
    found = _BINDING.fullmatch(text)
    if found is None:
        raise WrongUse(f"{where}: {text!r} binds no key to a host; {_FORM}")
    scheme, host, port, variable = found.groups()
    return Binding(scheme or "", host.lower().strip("[]"), int(port) if port else None, variable)


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
