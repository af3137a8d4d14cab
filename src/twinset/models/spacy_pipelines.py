"""spaCy's pipelines, found by name or path without any download; those that come with twinset are known by name."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.locations import shipped
from twinset.models.files import refuse_links

if TYPE_CHECKING:
    from spacy.language import Language

EMBEDDED = "en_captions_sm"  # the default
ALL_EMBEDDED = (EMBEDDED, "en_ewt_sm")  # the pipelines that come with twinset: CREDITS.md
#: What is read of a pipeline's documents, by spaCy's attribute of a token.
GIVES = {"DEP": "dependencies", "POS": "parts of speech", "LEMMA": "lemmas"}
LIBRARIES = ("spacy", "thinc", "blis", "numpy")  # what a pipeline's results depend on, besides itself

REMEDY = (
    "name an installed package (nothing is downloaded here), the folder of a pipeline, or one that comes with twinset: "
    f"{', '.join(ALL_EMBEDDED)}"
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline by name. source: where spaCy finds it, the name of a package or a folder. digest: over names and
    contents of all files. torch: whether it may need PyTorch: some of its networks are not spaCy's own.
    """

    name: str
    source: str
    digest: str
    torch: bool


def find_pipeline(name: str = EMBEDDED) -> Pipeline:
    """One of `ALL_EMBEDDED`, an installed package, or a folder, in this order; raises `WrongUse` for another name."""
    package = None if name in ALL_EMBEDDED else _package(name)
    folder = package or (parsers_folder() / name if name in ALL_EMBEDDED else Path(name).expanduser())
    if not folder.is_dir():
        raise WrongUse(f"pipeline {name}: neither an installed package nor a folder; {REMEDY}")
    if package is None:
        refuse_links(folder)
    if not (folder / "config.cfg").is_file() and not (package and any(package.glob("*/config.cfg"))):
        raise WrongUse(f"pipeline {name}: not a spaCy pipeline, which has a config.cfg; {REMEDY}")
    settings = "\n".join(path.read_text("utf-8", "replace") for path in sorted(folder.rglob("config.cfg")))
    networks = re.findall(r'^@architectures *= *"([^"]*)"', settings, re.MULTILINE)
    torch = any(not network.startswith("spacy.") or "torch" in network.lower() for network in networks)
    hashed = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:  # what Python compiled is no part of it
            hashed.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of_file(path)[0]}\n".encode())
    return Pipeline(name, name if package else str(folder.resolve()), hashed.hexdigest(), torch)


def check_installed(key: str, name: str, *libraries: str) -> None:
    """Raise `WrongUse` where spaCy, a pipeline or another library is not installed. key: of the settings in the recipe
    that hold ``pipeline``.
    """
    try:
        for library in (*LIBRARIES, *libraries):
            version(library)
    except PackageNotFoundError as error:
        raise WrongUse(f"{key}: {error.name} is not installed; pip install 'twinset[text]'") from error
    with naming(f"{key}.pipeline"):
        find_pipeline(name)


@cache
def load_pipeline(pipeline: Pipeline) -> Language:
    """A pipeline, loaded once a process; raises `WrongUse` where it cannot be loaded, or lacks what `GIVES` names."""
    if not pipeline.torch:
        _import_spacy_alone()
    import spacy

    try:
        nlp = spacy.load(pipeline.source)
        doc = nlp("A woman is playing the piano in the room.")
    except MemoryError:
        raise
    except Exception as error:  # whatever its files make spaCy raise, some only in use
        raise WrongUse(f"pipeline {pipeline.name}: spaCy cannot load it ({error}); install it again") from error
    missing = [words for attribute, words in GIVES.items() if not doc.has_annotation(attribute)]
    if missing or nlp.vocab.get_noun_chunks is None:
        raise WrongUse(f"pipeline {pipeline.name}: gives no {', no '.join(missing or ['noun chunks'])}; {REMEDY}")
    return nlp


def _package(name: str) -> Path | None:
    """The folder of an installed package; None where there is none, or it is a single module."""
    try:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
    except ValueError:  # of __main__
        return None
    if spec is None or spec.origin is None or not spec.submodule_search_locations:  # a mere folder has no origin
        return None
    return Path(spec.origin).parent


def _import_spacy_alone() -> None:
    """Import spaCy without PyTorch, which thinc imports wherever it is installed: 500 MB a process."""
    if "torch" in sys.modules or "spacy" in sys.modules:
        return
    modules: dict[str, Any] = sys.modules
    modules["torch"] = None
    try:
        import spacy  # noqa: F401
    finally:
        del modules["torch"]


def parsers_folder() -> Path:
    """Folder of the spaCy pipelines that come with twinset."""
    return shipped("generators") / "scene_graphs"
