"""Where the inputs of a recipe lie: paths of this machine, URLs, and names of what installed packages bring.

``NAME:relative/path`` is a file in a folder of an installed package; a plain name can be a model's.
"""

import ipaddress
import os
import re
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from twinset.contracts.doors import Registry, installed
from twinset.contracts.errors import WrongUse


def shipped(room: str) -> Path:
    """The folder of a room, in the package or in the checkout beside it (see the ``__path__`` of `twinset`).

    Raises:
        FileNotFoundError: the installation is not complete.
    """
    spec = find_spec(f"twinset.{room}")  # without importing it; `manifests` holds no Python
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"twinset/{room} is not installed; install twinset again")
    return Path(next(iter(spec.submodule_search_locations)))


KINDS: dict[str, str] = {}  # twinset itself brings no folder
MODEL_FOLDERS = "twinset.model_folders"  # the group of entry points that name models (`models.files.ModelFolder`)
VOCABULARIES = shipped("manifests") / "vocabularies"  # lists of words
#: Schemes of the URLs that are opened. fsspec knows more: some log in to other hosts, some read local files.
SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "https", "http", "file")
_PLACE = re.compile(r"([a-z][a-z0-9-]+):(?!//)(.*)", re.DOTALL)


def cache_folder() -> Path:
    """What is kept on this machine: ``$TWINSET_CACHE``, or ``twinset`` in ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("TWINSET_CACHE") or os.path.join(caches, "twinset"))


def local_folder_of(out: str | Path) -> Path:
    """The folder that a run or an export writes; raises `WrongUse` for a URL."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(out)):  # a Path has one slash where a URL has two
        raise WrongUse(f"{out}: is a URL, and this is written to a local folder only; name one, and copy it there")
    return Path(out)


def checked_url(url: str) -> str:
    """A URL that a recipe, a command or data names; raises `WrongUse` for one of another scheme, or a chain of them.

    Everything that hands a URL to fsspec asks this first.
    """
    if "::" in url or url.partition("://")[0] not in SCHEMES:
        allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        hub = "; for a finished dataset: twinset publish OUT --to hf://datasets/ORG/NAME" * url.startswith("hf://")
        message = f"{url[:300]}: not a URL that is opened; name a folder, or one URL that begins with {allowed}{hub}"
        raise WrongUse(message)
    return url


#: Folders that installed packages bring: an entry point's name is the NAME in ``NAME:relative/path``.
PLACES = Registry[Path]("place", Path, __name__, "twinset.places", objects=True)


def symbolic(location: str | Path) -> str:
    """A location as recipes name it on any machine: ``NAME:relative/path`` in a package's folder, else as it is."""
    if isinstance(location, Path):
        location = Path(os.path.normpath(location))
        for name in PLACES.kinds():
            try:
                folder = _place(name)
            except WrongUse:
                continue  # of a package that is broken; whoever names its place is told
            if location.is_relative_to(folder):
                return f"{name}:{location.relative_to(folder).as_posix()}"
    return str(location)


def on_this_machine(location: str) -> str:
    """A location of a recipe as a path of this machine, or its URL. Raises `WrongUse`: no installed package brings the
    place, or the path leaves its folder.
    """
    if (named := _PLACE.fullmatch(location)) is None:
        return location
    relative = PurePosixPath(named[2])
    if relative.is_absolute() or ".." in relative.parts or {*"\\:"} & {*named[2]}:  # the latter two on Windows
        raise WrongUse(f"{location!r} leaves the folder of {named[1]}; name a path inside of it")
    return str(_place(named[1]) / relative)


def _place(name: str) -> Path:
    """The folder of a place. Raises `WrongUse` where no package brings it, or as a path of the working folder."""
    folder = PLACES.get(name)
    if not folder.is_absolute():
        raise WrongUse(f"place {name!r}: its package names the relative folder {folder}; correct the package")
    return folder


def is_model_folder(model: str) -> bool:
    """Whether a model is named by its folder: a path that is absolute or begins with ``.`` or ``~``.

    Else it is one that an installed package brings, or an id of the Hugging Face hub, whose files lie in the local
    cache.
    """
    return model.startswith((".", "/", "~"))


def is_brought_model(model: str) -> bool:
    """Whether an installed package brings a model of this name."""
    return model in installed(MODEL_FOLDERS)


def parsers_folder() -> Path:
    """Folder of the spaCy pipelines that come with twinset."""
    return shipped("generators") / "scene_graphs"


def is_place(location: str) -> bool:
    """Whether a location of a recipe names a package's folder, which need not be known here."""
    return _PLACE.fullmatch(location) is not None


def is_symbolic(location: str) -> bool:
    """Whether a location of a recipe is none of this machine's paths: one of a package's folder, or a URL."""
    return is_place(location) or "://" in location


def _expand(value: Any) -> Any:
    try:
        return on_this_machine(value) if isinstance(value, str) else value
    except WrongUse as error:
        raise ValueError(str(error)) from error


# A recipe travels to workers on other machines: there the package lies elsewhere.
Location = Annotated[Path, BeforeValidator(_expand), PlainSerializer(symbolic, return_type=str)]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host, by its name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
