"""The files of a model for visual question answering; only files are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from twinset.models.files import ModelMissing, files_digest, local_folder, read_json

FILES = ("config.json", "model.safetensors", "preprocessor_config.json")
WORDS = ("tokenizer.json", "vocab.txt")
_OTHERS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
LAYOUT = f"A model is a BLIP or ViLT folder with {', '.join(FILES)} and tokenizer.json or vocab.txt"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on disk. architecture: its ``model_type``. files: names of those that decide its answers."""

    folder: Path
    architecture: Literal["blip", "vilt"]
    files: tuple[str, ...]

    def digest(self) -> str:
        """Of names and contents."""
        return files_digest([self.folder / name for name in self.files])


def find_model(name: str) -> ModelFiles:
    """The files of a model by its folder or its hub id.

    Raises:
        ModelMissing: there is none, or it is another kind of model; the message says what to do.
        WrongUse: its config.json is broken.
    """
    folder = local_folder(name, LAYOUT)
    missing = [file for file in FILES if not (folder / file).is_file()]
    if "model.safetensors" in missing and (folder / "pytorch_model.bin").is_file():
        raise ModelMissing(
            f"{folder}: has pytorch_model.bin alone, a pickle, which is not loaded; convert it to model.safetensors "
            "with safetensors.torch.save_model"
        )
    words = [file for file in WORDS if (folder / file).is_file()]
    if missing or not words:
        lacking = missing or ["tokenizer.json or vocab.txt"]
        raise ModelMissing(f"{folder}: lacks {', '.join(lacking)}. {LAYOUT}")
    architecture = read_json(folder / "config.json").get("model_type")
    if architecture not in ("blip", "vilt"):
        raise ModelMissing(f"{folder}: is a model of type {architecture!r}. {LAYOUT}")
    others = tuple(file for file in _OTHERS if (folder / file).is_file())
    return ModelFiles(folder, cast(Literal["blip", "vilt"], architecture), (*FILES, *words, *others))
