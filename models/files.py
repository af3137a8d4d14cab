"""Where a model lies: a folder, or a hub id in the local Hugging Face cache. Nothing is downloaded.

Only files are looked at, without the libraries that load them: a machine that plans may have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from twinset.manifests.canonical import digest, sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.shards.media.media_folder import EscapesRoot, inside

ADAPTER = "adapter_config.json"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
TOKENIZERS = (
    *("vocab.json", "merges.txt", "tokenizer_config.json"),
    *("tokenizer.json", "special_tokens_map.json", "added_tokens.json"),
)


class ModelMissing(WrongUse):
    """A model, or a file of it, is not on this machine; the message says which files to put where."""


def local_folder(name: str, layout: str) -> Path:
    """The folder of a model by its path or its hub id.

    A name that is a folder here is taken as one; otherwise OWNER/NAME is looked up in the cache.

    Args:
        layout: the files that such a model has, for messages.

    Raises:
        ModelMissing: there is no such folder, or it cannot be read.
        WrongUse: as `refuse_adapter`.
    """
    folder = _found_folder(name, layout)
    refuse_adapter(folder)
    return folder


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
        raise ModelMissing(f"there is no model folder {name}: put a model there. {layout}")
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


def missing_tokenizer(folder: Path) -> list[str]:
    """Files without which a CLIP tokenizer cannot be loaded from a folder."""
    if (folder / "tokenizer.json").is_file():
        return []
    return [file for file in TOKENIZERS[:2] if not (folder / file).is_file()]


def pieces(index: Path) -> list[Path]:
    """The files that an index of weights names, in order, whether they are there or not.

    Raises:
        WrongUse: it is no such index, or names a file outside of its folder.
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
