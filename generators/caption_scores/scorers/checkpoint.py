"""The files of checkpoints of transformers, in a folder."""

from __future__ import annotations

from pathlib import Path

from twinset.models.files import TOKENIZERS, ModelMissing, local_folder, pieces

#: Weights by the name of their first file, in the order of preference; the others are read without code
#: (``weights_only``), as older checkpoints have no safetensors.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
VOCABULARIES = ("tokenizer.json", "spiece.model", "vocab.json")
_LAYOUT = "Such a model is a folder with config.json, model.safetensors or pytorch_model.bin, and its tokenizer"


def checkpoint_files(model: str) -> list[Path]:
    """The files of a checkpoint that decide its numbers, from its folder or its id in the local Hugging Face cache.

    Raises:
        ModelMissing: the folder, or a file of it, is not there.
        WrongUse: the index of its weights is not one.
    """
    folder = local_folder(model, _LAYOUT)
    first = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    missing += [] if first else [" or ".join(WEIGHTS[::2])]
    missing += [] if any((folder / name).is_file() for name in VOCABULARIES) else [" or ".join(VOCABULARIES)]
    if missing or first is None:
        raise ModelMissing(f"the model {model} lacks {', '.join(missing)}: put them into {folder}. {_LAYOUT}")
    weights = [folder / first, *(pieces(folder / first) if first.endswith(".json") else ())]
    if absent := [path.name for path in weights if not path.is_file()]:
        raise ModelMissing(f"the model {model} lacks {', '.join(absent)}, which {first} lists: put them into {folder}")
    used = [folder / name for name in ("config.json", "spiece.model", *TOKENIZERS) if (folder / name).is_file()]
    return [*used, *weights]
