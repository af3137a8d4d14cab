"""Where the inputs of a recipe lie; ``miniature:NAME`` means a file of the built-in miniature, on whatever machine."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

MINIATURE = "miniature:"
MINIATURE_VERSION = 6  # raised with every change of what the miniature draws
PROCEDURAL = "procedural"
PROCEDURAL_VERSION = 4  # likewise for the procedural assets
VOCABULARIES = Path(__file__).parent / "vocabularies"  # what EQ-Kubric and EQ-SD can say
CACHE_REMEDY = (
    "set TWINSET_CACHE to a folder that can be written and has 100 MB of room, and run the same command again"
)
SMALL = "small"  # the text-to-image model that comes with twinset
SMALL_RELATIONS = "small-relations"  # its sister, which draws two things and how they stand to each other


def cache_folder() -> Path:
    """Where what twinset draws itself is kept on a machine: ``$TWINSET_CACHE`` or ``~/.cache/twinset``."""
    return Path(os.environ.get("TWINSET_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "twinset"))


def miniature_folder() -> Path:
    """Folder that the miniature is drawn into, once a machine."""
    return cache_folder() / f"miniature-{MINIATURE_VERSION}"


def procedural_assets_folder() -> Path:
    """Folder that the procedural assets are drawn into, once a machine."""
    return cache_folder() / f"procedural-assets-{PROCEDURAL_VERSION}"


def _demo() -> Path:
    found = find_spec("twinset_demo")
    return Path(str(found.origin)).parent if found is not None else Path("twinset-demo")


def small_model_folder() -> Path:
    """Folder of the model that comes with twinset, in diffusers' layout."""
    return _demo() / "small_diffusion" / "model"


def relations_model_folder() -> Path:
    """The same for its sister."""
    return small_model_folder().with_name("relations_model")


def parsers_folder() -> Path:
    """Folder of the spaCy pipelines that come with twinset."""
    return Path(__file__).parents[1] / "generators" / "scene_graphs"


def small_clip_folder() -> Path:
    """Folder of the CLIP model that comes with twinset, in open_clip's layout."""
    return _demo() / "small_clip"


def built_in_models() -> dict[str, Path]:
    """Folders of the models that come with twinset, by their names in recipes."""
    return {SMALL: small_model_folder(), SMALL_RELATIONS: relations_model_folder()}


def model_name(model: str) -> str:
    """A model of a recipe as its folder or its id on the Hugging Face hub: what is built in is known here."""
    return str(built_in_models().get(model, model))


def is_model_folder(model: str) -> bool:
    """Whether a model is named by its folder: a path that is absolute or begins with ``.`` or ``~``.

    Else it is one of `built_in_models` or an id of the Hugging Face hub, whose files lie in the local cache.
    """
    return model.startswith((".", "/", "~"))


def is_miniature(path: Path) -> bool:
    """Whether a location belongs to the built-in miniature."""
    return path.is_relative_to(miniature_folder())


def is_symbolic(location: str) -> bool:
    """Whether a location of a recipe is none of this machine's paths: a name for what twinset draws, or a URL."""
    return location.startswith(MINIATURE) or location == PROCEDURAL or "://" in location


def _expand(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(MINIATURE):
        relative = PurePosixPath(value.removeprefix(MINIATURE))
        if relative.is_absolute() or ".." in relative.parts:
            raise ValueError(f"{value!r} leaves the folder of the miniature")
        return str(miniature_folder() / relative)
    return value


def _collapse(path: Path) -> str:
    # A recipe travels to workers on other machines: there the miniature lies in their own cache.
    if is_miniature(path):
        return MINIATURE + path.relative_to(miniature_folder()).as_posix()
    return str(path)


Location = Annotated[Path, BeforeValidator(_expand), PlainSerializer(_collapse, return_type=str)]
