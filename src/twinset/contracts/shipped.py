"""Where the files lie that come with twinset: recipes, lists of words, references, parsers."""

from importlib.util import find_spec
from pathlib import Path


def shipped(room: str) -> Path:
    """The folder of a room, in the package or in the checkout beside it (see the ``__path__`` of `twinset`).

    Raises:
        FileNotFoundError: the installation is not complete.
    """
    spec = find_spec(f"twinset.{room}")  # without importing it; `manifests` holds no Python
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"twinset/{room} is not installed; install twinset again")
    return Path(next(iter(spec.submodule_search_locations)))
