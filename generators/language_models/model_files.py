"""The files of a language model in a folder: what is loaded, and its digest. Only files are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manifests.canonical import digest
from shards.models.files import ModelMissing, local_folder, sha256_once

LAYOUT = (
    "A language model is a folder with config.json, tokenizer.json and *.safetensors, or with one .gguf file; nothing "
    "else is loaded"
)
_PARTS = ("*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "vocab.txt")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A language model on disk. gguf: name of its GGUF file; empty where it is in safetensors. files: all names."""

    folder: Path
    gguf: str
    files: Sequence[str]

    def digest(self) -> str:
        """Of names and contents."""
        return digest([[name, sha256_once(self.folder / name)] for name in self.files])


def find_model(name: str) -> ModelFiles:
    """The files of a model by its folder, its GGUF file or its hub id.

    Raises:
        ModelMissing: there is none, or it is of another form; the message says what to do.
    """
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelMissing(f"there is no file {name}. {LAYOUT}")
        return ModelFiles(path.parent, path.name, [path.name])
    folder = local_folder(name, LAYOUT)
    files = sorted({one.name for part in _PARTS for one in folder.glob(part) if one.is_file()})
    if any(one.endswith(".safetensors") for one in files):
        if absent := [one for one in ("config.json", "tokenizer.json") if one not in files]:
            raise ModelMissing(f"{folder}: there is no {absent[0]}. {LAYOUT}")
        return ModelFiles(folder, "", files)
    packed = sorted(one.name for one in folder.glob("*.gguf"))
    if len(packed) > 1:
        raise ModelMissing(f"{folder}: has {len(packed)} GGUF files; name one of them, such as {folder / packed[0]}")
    if not packed:
        raise ModelMissing(f"{folder}: has neither *.safetensors nor a .gguf file. {LAYOUT}")
    return ModelFiles(folder, packed[0], packed)
