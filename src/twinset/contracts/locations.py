"""Where the inputs of a recipe lie: paths of this machine, URLs, and names of what installed packages bring.

``NAME:relative/path`` is a file in a folder of an installed package; a plain name can be a model's.
"""

import os
import re
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, PlainSerializer

from twinset.contracts.doors import Registry, UnknownKind, installed


def shipped(room: str) -> Path:
    """The folder of a room, in the package or in the checkout beside it (see the ``__path__`` of `twinset`)."""
    spec: Any = find_spec(f"twinset.{room}")  # without importing it; `manifests` holds no Python
    return Path(next(iter(spec.submodule_search_locations)))


T = TypeVar("T")

KINDS: dict[str, str] = {}  # twinset itself brings no folder
MODEL_FOLDERS = "twinset.model_folders"  # the group of entry points that name models (`models.files.ModelFolder`)
VOCABULARIES = shipped("manifests") / "vocabularies"  # lists of words
_PLACE = re.compile(r"([a-z][a-z0-9-]+):(?!//)(.*)", re.DOTALL)


def cache_folder() -> Path:
    """What is kept on this machine: ``$TWINSET_CACHE``, or ``twinset`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("TWINSET_CACHE") or os.path.join(caches, "twinset"))


#: Folders that installed packages bring: an entry point's name is the NAME in ``NAME:relative/path``.
PLACES = Registry[Path]("place", Path, __name__, "twinset.places")


def symbolic(location: str | Path) -> str:
    """A location as recipes name it on any machine: ``NAME:relative/path`` in a package's folder, else as it is."""
    if isinstance(location, Path):
        location = Path(os.path.normpath(location))
        for name in PLACES.kinds():
            folder = PLACES.find(name)
            if location.is_relative_to(folder):
                return f"{name}:{location.relative_to(folder).as_posix()}"
    return str(location)


def on_this_machine(location: T) -> T | str:
    """A location of a recipe as a path of this machine; a URL, and what is no text, as it stands.

    Raises `WrongUse`: no installed package brings the place, or the path leaves its folder.
    """
    if not isinstance(location, str) or (named := _PLACE.fullmatch(location)) is None:
        return location
    relative = PurePosixPath(named[2])
    if relative.is_absolute() or ".." in relative.parts or {*"\\:"} & {*named[2]}:  # the latter two on Windows
        raise UnknownKind(f"{location!r} leaves the folder of {named[1]}; name a path inside of it")
    return str(PLACES.find(named[1]) / relative)


def is_place(location: str) -> bool:
    """Whether a location of a recipe names a package's folder, which need not be known here."""
    return _PLACE.fullmatch(location) is not None


class Typed(str):
    """A text of ``--set``: as a path, it counts from the current folder, not from the recipe's."""


# A recipe travels to workers on other machines: there the package lies elsewhere.
Location = Annotated[Path, BeforeValidator(on_this_machine), PlainSerializer(symbolic, return_type=str)]


def is_model_folder(model: str) -> bool:
    """Whether a model is named by its folder, not as one of a package or of the Hugging Face hub's local cache."""
    return model.startswith((".", "/", "~"))


def is_brought_model(model: str) -> bool:
    """Whether an installed package brings a model of this name."""
    return model in installed(MODEL_FOLDERS)
