"""Text-to-image models on disk: a folder in diffusers' layout, or a hub id in the local Hugging Face cache.

Nothing is downloaded. Only files are looked at, without the libraries that load them: whoever plans may have none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manifests.canonical import digest
from manifests.errors import WrongUse
from shards.media.media_folder import EscapesRoot, inside
from shards.models.files import TOKENIZERS, ModelMissing, local_folder, missing_tokenizer, sha256_once

WEIGHTS = {
    "unet": "diffusion_pytorch_model",
    "vae": "diffusion_pytorch_model",
    "text_encoder": "model",
    "text_encoder_2": "model",
}
LAYOUT = (
    "A model folder holds model_index.json, scheduler/scheduler_config.json, tokenizer/vocab.json and merges.txt, "
    + ", ".join(f"{part}/{file}.safetensors" for part, file in list(WEIGHTS.items())[:3])
    + " with a config.json beside each; SDXL's also text_encoder_2 and tokenizer_2 (weights as safetensors only)"
)
CONFIGS = ("model_index.json", "scheduler/scheduler_config.json", *(f"{part}/config.json" for part in WEIGHTS))


def model_folder(name: str) -> Path:
    """The folder of a model by its path or its hub id, with all files that loading needs; else ModelMissing."""
    folder = local_folder(name, LAYOUT)
    if missing := _missing(folder):
        raise ModelMissing(f"the model {name} lacks {', '.join(missing)}: put them into {folder}. {LAYOUT}")
    return folder


def weights_digest(name: str) -> dict[str, str]:
    """sha256 of each file that makes a model draw what it draws (weights, configurations, tokenizers), by its path."""
    folder = model_folder(name)
    tokenizers = {folder / part / file for part in ("tokenizer", "tokenizer_2") for file in TOKENIZERS}
    weights = {path for part in WEIGHTS for path in weights_of(folder, part)[1]}
    configs = {folder / file for file in CONFIGS}
    used = sorted(path for path in tokenizers | weights | configs if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_once(path) for path in used}


def model_digest(name: str) -> str:
    """One digest of ``weights_digest``. A process reads each model's files once."""
    return digest(weights_digest(name))


def _missing(folder: Path) -> list[str]:
    """Files that loading needs and that are not in the folder."""
    if not (folder / "model_index.json").is_file():
        return ["model_index.json"]
    two = has_part(read_json(folder / "model_index.json"), "text_encoder_2")
    parts = [part for part in WEIGHTS if two or part != "text_encoder_2"]
    needed = ["scheduler/scheduler_config.json", *(f"{part}/config.json" for part in parts)]
    missing = [file for file in needed if not (folder / file).is_file()]
    missing += [f"{part}/{WEIGHTS[part]}.safetensors" for part in parts if not weights_of(folder, part)[1]]
    for part in ("tokenizer", "tokenizer_2") if two else ("tokenizer",):
        missing += [f"{part}/{file}" for file in missing_tokenizer(folder / part)]
    return missing


def weights_of(folder: Path, part: str) -> tuple[str | None, list[Path]]:
    """The safetensors of a part, whole or in pieces with their index, after their variant (None: full precision).

    Without files if they are not all there.
    """
    for variant, suffix in ((None, ""), ("fp16", ".fp16")):
        whole = folder / part / f"{WEIGHTS[part]}{suffix}.safetensors"
        if whole.is_file():
            return variant, [whole]
        index = folder / part / f"{WEIGHTS[part]}.safetensors.index{suffix}.json"
        pieces = _pieces(index) if index.is_file() else []
        if pieces and all(piece.is_file() for piece in pieces):
            return variant, [index, *pieces]
    return None, []


def _pieces(index: Path) -> list[Path]:
    named = read_json(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(piece, str) for piece in named.values()):
        raise WrongUse(f"{index}: weight_map must give the file of each tensor; get the file again")
    pieces = []
    for name in sorted(set(named.values())):
        try:
            pieces.append(inside(index.parent, name))
        except EscapesRoot as error:
            raise WrongUse(
                f"{index}: {name!r} leaves the folder; take the model from a place that you trust"
            ) from error
        if pieces[-1].suffix != ".safetensors":
            raise WrongUse(f"{index}: {name!r} is no safetensors file; get the model's safetensors")
    return pieces


def has_part(index: Mapping[str, Any], part: str) -> bool:
    """Whether a model_index.json names a part: ``[library, class]``, both null where it is left out."""
    named = index.get(part)
    return bool(named[0] if isinstance(named, list) and named else named)


def read_json(path: Path) -> dict[str, Any]:
    """What a configuration of a model says; raises `WrongUse` where the file holds no JSON object."""
    try:
        found: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{path}: not JSON ({error}); get the file again, it may have been cut short") from error
    if not isinstance(found, dict):
        raise WrongUse(f"{path}: no JSON object; get the file again")
    return found
