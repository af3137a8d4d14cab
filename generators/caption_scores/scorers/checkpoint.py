"""Checkpoints of transformers in a folder: their files, and loading them whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manifests.canonical import digest
from manifests.errors import TwinsetError, WrongUse
from shards.models.files import TOKENIZERS, ModelMissing, local_folder, sha256_once

#: Weights by the name of their first file, in the order of preference; the others are read without code
#: (``weights_only``), as older checkpoints have no safetensors.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
VOCABULARIES = ("tokenizer.json", "spiece.model", "vocab.json")
_LAYOUT = "Such a model is a folder with config.json, model.safetensors or pytorch_model.bin, and its tokenizer"


def checkpoint_files(model: str) -> list[Path]:
    """The files of a checkpoint that decide its numbers, from its folder or its id in the local Hugging Face cache.

    Raises:
        ModelMissing: the folder, or a file of it, is not there.
        WrongUse: the list of its weights is not one.
    """
    folder = local_folder(model, _LAYOUT)
    first = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    missing += [] if first else [" or ".join(WEIGHTS[::2])]
    missing += [] if any((folder / name).is_file() for name in VOCABULARIES) else [" or ".join(VOCABULARIES)]
    if missing or first is None:
        raise ModelMissing(f"the model {model} lacks {', '.join(missing)}: put them into {folder}. {_LAYOUT}")
    weights = [folder / first, *(_listed(folder / first) if first.endswith(".json") else ())]
    if absent := [path.name for path in weights if not path.is_file()]:
        raise ModelMissing(f"the model {model} lacks {', '.join(absent)}, which {first} lists: put them into {folder}")
    used = [folder / name for name in ("config.json", "spiece.model", *TOKENIZERS) if (folder / name).is_file()]
    return [*used, *weights]


def _listed(index: Path) -> list[Path]:
    """The files that an index of weights names; none may lie outside of its folder."""
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        if all(isinstance(name, str) and Path(name).name == name for name in names):
            return [index.parent / name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise WrongUse(f"{index}: not an index of weights; copy the checkpoint again")


def files_digest(files: Sequence[Path]) -> str:
    """One digest of files and their names; each is read once a process."""
    return digest({path.name: sha256_once(path) for path in files})


def load_checkpoint(loader: Any, folder: Path, precision: str, **options: Any) -> Any:
    """A model of transformers, ready for inference on the CPU.

    Args:
        loader: class of transformers with ``from_pretrained``.
        precision: ``float32`` or ``bfloat16``.
        options: more for ``from_pretrained``.

    Raises:
        WrongUse: files are damaged or of another model, or tensors are missing that would be random.
    """
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, found = loader.from_pretrained(
            folder, dtype=precision, local_files_only=True, trust_remote_code=False, output_loading_info=True, **options
        )
    except Exception as error:
        _raise_unless_memory(error, folder, "the model")
    # What a checkpoint lacks is filled with random numbers: a base model would score at random without a word.
    if missing := sorted(found["missing_keys"]):
        raise WrongUse(
            f"{folder}: its weights lack {missing[0]} ({len(missing)} missing), so it is not a checkpoint of a "
            f"{type(model).__name__}; name the folder of one that was trained for this"
        )
    return model.eval()


def load_tokenizer(folder: Path, **options: Any) -> Any:
    """A checkpoint's tokenizer; raises `WrongUse` when it cannot be loaded."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:
        _raise_unless_memory(error, folder, "the tokenizer")


def _raise_unless_memory(error: Exception, folder: Path, what: str) -> Any:
    from shards.models.device import ran_out

    if isinstance(error, TwinsetError) or ran_out(error):
        raise error
    problem = f"{type(error).__name__}: {error}"[:500]
    raise WrongUse(
        f"{folder}: {what} cannot be loaded ({problem}); copy the checkpoint again, or name another"
    ) from error
