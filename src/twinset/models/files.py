"""Where a model lies, and which of its files decide what it gives: a folder, a package, or the hub's cache.

Nothing is downloaded. Only files are looked at, without the libraries that load them: a machine that plans may have
none. `models.loading` opens what is found here.
"""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.doors import MORE, Registry
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import MODEL_FOLDERS, is_brought_model
from twinset.shards.media.media_folder import EscapesRoot, inside

ADAPTER = "adapter_config.json"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
TOKENIZERS = (
    *("vocab.json", "merges.txt", "tokenizer_config.json"),
    *("tokenizer.json", "special_tokens_map.json", "added_tokens.json"),
)
#: Weights of transformers by the name of their first file, the preferred first. Older checkpoints have no safetensors:
#: of them only tensors are unpickled (``weights_only``).
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


class ModelMissing(WrongUse):
    """A model, or a file of it, is not on this machine; the message says which files to put where."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model that an installed package brings, named by its entry point of the group ``twinset.model_folders``.

    title: of the model in cards; origin: what it was trained on, and its licence, in a sentence. defaults: settings
    that go with it where the recipe does not say, of all classes that can draw with it. notes: a Markdown list for
    cards; of a scorer a sentence for reports. vocabularies: files of edited captions by name, in the form of
    ``manifests/vocabularies/eq_sd.yaml``, if the model knows the words of no others. scorer: the kind of ``--model``
    that opens it, such as ``open_clip``.
    """

    folder: Path
    title: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    notes: str = ""
    vocabularies: Mapping[str, Path] = field(default_factory=dict)
    scorer: str = ""
    origin: str = ""


KINDS: dict[str, str] = {}  # twinset itself brings no model with a name
BROUGHT = Registry[ModelFolder]("model", ModelFolder, __name__, MODEL_FOLDERS)


def brought_model(name: str) -> ModelFolder | None:
    """The model of that name, if an installed package brings it."""
    return BROUGHT.find(name) if is_brought_model(name) else None


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one kind of models.

    words: the layout in a sentence, for messages. needs: one file of each group must be there. files: those that decide
    what a model gives, as far as they are there, in the order of its digest; `WEIGHTS` stands for the weights and, of
    weights in pieces, for the index and its pieces.
    """

    words: str
    needs: tuple[tuple[str, ...], ...]
    files: tuple[str | tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on disk. paths: the files that decide what it gives."""

    folder: Path
    paths: tuple[Path, ...]

    @property
    def gguf(self) -> str:
        """Name of its GGUF file; empty where weights have another form."""
        return next((path.name for path in self.paths if path.suffix == ".gguf"), "")

    @property
    def libraries(self) -> tuple[str, ...]:
        """What loads it in transformers."""
        return ("torch", "transformers", *(("gguf", "accelerate") if self.gguf else ()))

    def digest(self) -> str:
        """Of names and contents, in order."""
        return files_digest(self.paths)


def find_model(name: str, layout: Layout) -> ModelFiles:
    """The files of a model by its folder or its hub id.

    Raises:
        ModelMissing: there is none, or it lacks a file.
        WrongUse: as `local_folder` and `weights_in`.
    """
    folder = local_folder(name, layout.words)
    check_files(name, folder, layout.needs, layout.words)
    paths = list[Path]()
    for one in layout.files:
        if isinstance(one, tuple):
            paths += weights_in(folder, one)
        elif (folder / one).is_file():
            paths.append(folder / one)
    return ModelFiles(folder, tuple(paths))


def check_files(name: str, folder: Path, needs: Sequence[Sequence[str]], layout: str) -> None:
    """Raise `ModelMissing` where a folder of the model ``name`` has no file of a group, such as weights of two forms.

    Args:
        layout: the files that such a model has, for messages.
    """
    lacking = [group for group in needs if not any((folder / file).is_file() for file in group)]
    if lacking:
        words = (" or ".join(file for file in group if not file.endswith(".index.json")) for group in lacking)
        raise ModelMissing(f"the model {name} lacks {', '.join(words)}: put them into {folder}. {layout}")


def check_type(path: Path, known: Collection[str], key: str = "model_type") -> str:
    """The type of a network by its configuration; raises `WrongUse` where it is none of ``known``.

    Args:
        key: of the configuration; ``_class_name`` in those of diffusers.
    """
    value = read_json(path).get(key)
    if value not in [*known]:
        raise WrongUse(
            f"{path}: {key} is {str(value)[:80]!r}, and must be {' or '.join(known)} here; name a model of this type, "
            "or get its files again, all from one model"
        )
    return str(value)


def check_whole(path: Path, key: str, most: int, absent: int) -> int:
    """A number of a configuration, ``absent`` where it has none; raises `WrongUse` for one that is not whole, or not
    from 1 to ``most``.
    """
    value = read_json(path).get(key, absent)
    if type(value) is not int or not 1 <= value <= most:
        raise WrongUse(f"{path}: {key} is {str(value)[:50]}, no whole number from 1 to {most:,}; get the file again")
    return value


def weights_in(folder: Path, names: Sequence[str]) -> list[Path]:
    """The first of some files of weights that is there, and the pieces of an index; none where none is there.

    Raises:
        ModelMissing: a piece is not there.
        WrongUse: the index is none, or names files of another kind or outside of its folder.
    """
    first = next((folder / file for file in names if (folder / file).is_file()), None)
    if first is None or first.suffix != ".json":
        return [first] if first else []
    kind = ".safetensors" if ".safetensors." in first.name else ".bin"
    found = pieces(first)
    for piece in found:
        if piece.suffix != kind:
            raise WrongUse(f"{first}: {piece.name!r} is no {kind[1:]} file; get the model's files again")
        if not piece.is_file():
            raise ModelMissing(f"{folder}: lacks {piece.name}, which {first.name} lists: put it there")
    return [first, *found]


def safetensors_of(folder: Path, stem: str) -> list[Path]:
    """The safetensors of a part of a diffusers folder, whole or in pieces, in full precision before ``fp16``.

    Raises as `weights_in`, and `WrongUse` where there are both: diffusers reads the pieces, transformers the whole.
    """
    if (old := folder / f"{stem}.safetensors.fp16.index.json").exists():  # which diffusers reads before all others
        raise WrongUse(f"{old}: an index of an old form; name it {stem}.safetensors.index.fp16.json")
    for whole, index in (
        (f"{stem}.safetensors", f"{stem}.safetensors.index.json"),
        (f"{stem}.fp16.safetensors", f"{stem}.safetensors.index.fp16.json"),
    ):
        if (folder / whole).is_file() and (folder / index).is_file():
            raise WrongUse(f"{folder}: has {whole} and {index}, which names other files; remove one of both")
        if found := weights_in(folder, (whole, index)):
            return found
    return []


def local_folder(name: str, layout: str) -> Path:
    """The folder of a model by its name, its path or its hub id.

    What an installed package brings comes first, then a folder that is here; otherwise OWNER/NAME is looked up in the
    cache.

    Args:
        layout: the files that such a model has, for messages.

    Raises:
        ModelMissing: there is no such folder, or it cannot be read.
        WrongUse: as `refuse_adapter`, or a link leads out of the folder.
    """
    brought = brought_model(name)
    folder = brought.folder if brought is not None else _found_folder(name, layout)
    refuse_adapter(folder)
    refuse_links(folder)
    return folder


def refuse_links(folder: Path) -> None:
    """Raise `WrongUse` for a link that leads out of a model's folder."""
    root = Path(os.path.realpath(folder))  # unlike `resolve`, it takes a link to itself, which fails when it is opened
    # The cache of Hugging Face links from snapshots/REVISION to the blobs of the same model.
    roots = [root, *([root.parent.parent / "blobs"] if root.parent.name == "snapshots" else ())]
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        aim = Path(os.path.realpath(path))
        if path.is_symlink() and not any(aim.is_relative_to(one) for one in roots):
            raise WrongUse(
                f"{path}: links to {aim}, out of the model's folder; put the file itself there, if you "
                "trust where the folder comes from"
            )


def refuse_adapter(folder: Path) -> None:
    """Raise `WrongUse` for a model with an adapter of peft beside it.

    Transformers would load the adapter where peft is installed, and only there; the model that it names lies elsewhere.
    """
    if (folder / ADAPTER).is_file():
        raise WrongUse(
            f"{folder}: holds an adapter ({ADAPTER}), which would change the model only where peft is installed; merge "
            "both (peft's merge_and_unload, then save_pretrained) and name the new folder, or remove the adapter"
        )


def _found_folder(name: str, layout: str) -> Path:
    try:
        folder = Path(name).expanduser()
        if folder.is_dir():
            return folder
    except (RuntimeError, OSError) as error:  # an unknown user; a name too long; no permission
        raise ModelMissing(f"there is no model folder {name[:200]} that can be read ({error}). {layout}") from error
    if not HUB_ID.fullmatch(name):
        raise ModelMissing(f"there is no model folder {name}: put a model there{MORE}. {layout}")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise ModelMissing(
            f"to find {name} in the Hugging Face cache, huggingface_hub must be installed (extra `models`); or name "
            f"the model's folder. {layout}"
        ) from error
    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise ModelMissing(
            f"the model {name} is neither a folder here nor in the Hugging Face cache, and twinset downloads nothing: "
            f"run `hf download {name}` where there is a network (HF_HOME: where the cache is), or put its files into a "
            f"folder and name that. {layout}"
        ) from error


def pieces(index: Path) -> list[Path]:
    """The files that an index of weights names, in order, whether they are there or not. Raises `WrongUse`: it is no
    such index, or names a file outside of its folder.
    """
    named = read_json(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(piece, str) for piece in named.values()):
        raise WrongUse(f"{index}: weight_map must give the file of each tensor; get the file again")
    found = []
    for name in sorted(set(named.values())):
        try:
            found.append(inside(index.parent, name))
        except EscapesRoot as error:
            raise WrongUse(
                f"{index}: {name!r} leaves the folder; take the model from a place that you trust"
            ) from error
    return found


def read_json(path: Path) -> dict[str, Any]:
    """What a configuration of a model says; raises `WrongUse` where the file holds no JSON object."""
    try:
        found: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{path}: not JSON ({error}); get the file again, it may have been cut short") from error
    if not isinstance(found, dict):
        raise WrongUse(f"{path}: no JSON object; get the file again")
    return found


def files_digest(files: Sequence[Path]) -> str:
    """One digest of files of a folder and their names; each is read once a process."""
    return digest([[path.name, sha256_once(path)] for path in files])


def sha256_once(path: Path) -> str:
    """sha256 of a file; a process reads it again only when its size or time of change differ."""
    stat = path.stat()
    return _sha256_of_version(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256_of_version(path: Path, _size: int, _changed: int) -> str:
    return sha256_of_file(path)[0]
