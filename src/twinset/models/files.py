"""Where a model lies, and which of its files decide what it gives: a folder, a package, or the hub's cache.

Nothing is downloaded. Only files are looked at, without the libraries that load them; `models.loading` opens them.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.doors import MORE, Registry
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import MODEL_FOLDERS, is_brought_model

ADAPTER = "adapter_config.json"
TOKENIZERS = (
    *("vocab.json", "merges.txt", "tokenizer_config.json"),
    *("tokenizer.json", "special_tokens_map.json", "added_tokens.json"),
)
MORE_TEMPLATES = "additional_chat_templates/default.jinja"  # read where no other template is
#: Weights of transformers by the name of their first file, the preferred first.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


class ModelMissing(WrongUse):
    """A model, or a file of it, is not on this machine; the message says which files to put where."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model that an installed package brings, named by its entry point of the group ``twinset.model_folders``.

    title: of the model in cards. origin: what it was trained on, and its licence, in a sentence. defaults: settings
    that go with it where the recipe does not say. notes: a Markdown list for cards; of a scorer a sentence for reports.
    vocabularies: files of edited captions by name, if the model knows the words of no others. scorer: the kind of
    ``--model`` that opens it, such as ``open_clip``.
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
    what a model gives, as far as they are there, in the order of its digest; a group is of weights, with their pieces.
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
        return digest([[path.name, sha256_once(path)] for path in self.paths])


def find_model(name: str, layout: Layout) -> ModelFiles:
    """The files of a model by its folder or its hub id.

    Raises:
        ModelMissing: there is none, or it lacks a file.
        WrongUse: as `local_folder` and `weights_in`.
    """
    folder = local_folder(name, layout.words)
    check_files(name, folder, layout.needs, layout.words)
    paths = list[Path]()
    for file in layout.files:
        if isinstance(file, tuple):
            paths += weights_in(folder, file)
        elif (folder / file).is_file():
            paths.append(folder / file)
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
    """The first of these files of weights that is there, and the pieces of an index; none where none is there.

    Raises:
        ModelMissing: a piece is not there.
        WrongUse: the index is none, or names files of another kind or outside of its folder.
    """
    first = next((folder / file for file in names if (folder / file).is_file()), None)
    if first is None or first.suffix != ".json":
        return [first] if first else []
    kind, pieces = ".safetensors" if ".safetensors." in first.name else ".bin", read_json(first).get("weight_map")
    named = sorted({str(piece) for piece in pieces.values()}) if isinstance(pieces, dict) else []
    if not named or any(Path(piece).name != piece or Path(piece).suffix != kind for piece in named):
        raise WrongUse(f"{first}: weight_map must give the {kind[1:]} file of each tensor, beside it; get it again")
    check_files(str(folder), folder, [(piece,) for piece in named], f"{first.name} lists them")
    return [first, *(folder / piece for piece in named)]


def safetensors_of(folder: Path, stem: str) -> list[Path]:
    """The safetensors of a part of a diffusers folder, whole or in pieces, in full precision before ``fp16``.

    Raises as `weights_in`, and `WrongUse` where there are both: diffusers reads the pieces, transformers the whole.
    """
    if (old := folder / f"{stem}.safetensors.fp16.index.json").exists():  # which diffusers reads before all others
        raise WrongUse(f"{old}: an index of an old form; name it {stem}.safetensors.index.fp16.json")
    for variant in ("", ".fp16"):
        whole, index = f"{stem}{variant}.safetensors", f"{stem}.safetensors.index{variant}.json"
        if (folder / whole).is_file() and (folder / index).is_file():
            raise WrongUse(f"{folder}: has {whole} and {index}, which names other files; remove one of both")
        if paths := weights_in(folder, (whole, index)):
            return paths
    return []


def local_folder(name: str, layout: str) -> Path:
    """The folder of a model by its name of an installed package, its path, or its hub id in the cache, in this order.

    Raises:
        ModelMissing: there is no such folder, or it cannot be read; the message has the layout.
        WrongUse: an adapter lies there, or a link leads out of the folder.
    """
    brought = brought_model(name)
    folder = brought.folder if brought is not None else _folder_here(name, layout)
    refuse_adapter(folder)
    refuse_links(folder)
    return folder


def refuse_links(folder: Path) -> None:
    """Raise `WrongUse` for a link that leads out of a model's folder."""
    roots = [Path(os.path.realpath(folder))]  # unlike `resolve`, it takes a link to itself: opening it fails
    if roots[0].parent.name == "snapshots":  # the hub's cache links from snapshots/REVISION to the same model's blobs
        roots.append(roots[0].parent.parent / "blobs")
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        aim = Path(os.path.realpath(path))
        if path.is_symlink() and not any(aim.is_relative_to(root) for root in roots):
            raise WrongUse(
                f"{path}: links to {aim}, out of the model's folder; put the file itself there, if you trust its source"
            )


def refuse_adapter(folder: Path) -> None:
    """Raise `WrongUse` for an adapter of peft beside a model: transformers loads it only where peft is installed."""
    if (folder / ADAPTER).is_file():
        raise WrongUse(
            f"{folder}: holds an adapter ({ADAPTER}); merge both (peft's merge_and_unload, then save_pretrained) and "
            "name the new folder, or remove the adapter"
        )


def _folder_here(name: str, layout: str) -> Path:
    try:
        if (folder := Path(name).expanduser()).is_dir():
            return folder
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, local_files_only=True))
    except (ImportError, RuntimeError, ValueError, OSError) as error:  # an unknown user, a name too long, no id, …
        raise ModelMissing(
            f"there is no model folder {name[:200]}{MORE}: it is neither a folder here nor in the Hugging Face cache, "
            f"and twinset downloads nothing; put its files into a folder, or run `hf download {name[:200]}`. {layout}"
        ) from error


def read_json(path: Path) -> dict[str, Any]:
    """What a configuration of a model says; raises `WrongUse` where the file holds no JSON object."""
    try:
        settings: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{path}: not JSON ({error}); get the file again, it may have been cut short") from error
    if not isinstance(settings, dict):
        raise WrongUse(f"{path}: no JSON object; get the file again")
    return settings


def sha256_once(path: Path) -> str:
    """sha256 of a file; a process reads it again only when its size or time of change differ."""
    return _sha256_of_version(path, path.stat().st_size, path.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256_of_version(path: Path, _size: int, _changed: int) -> str:
    return sha256_of_file(path)[0]
