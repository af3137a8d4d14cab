"""Text-to-image models on disk: a folder in diffusers' layout, or a hub id in the local Hugging Face cache.

Nothing is downloaded. Only files are looked at, without the libraries that load them: whoever plans may have none.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.kinds.samples import MediaFile
from twinset.models.files import (
    TOKENIZERS,
    ModelMissing,
    local_folder,
    read_json,
    safetensors_of,
    sha256_once,
)

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
UNET_LAYOUT = (
    f"A UNet is {WEIGHTS['unet']}.safetensors with its config.json, in the folder that is named or in its unet"
)


def model_folder(name: str, other_unet: bool = False) -> Path:
    """The folder of a model by its path or its hub id, with all files that loading needs; else ModelMissing.

    Args:
        other_unet: whether the UNet comes from elsewhere, so that the model may lack its own.
    """
    folder = local_folder(name, LAYOUT)
    if missing := _missing(folder, other_unet):
        raise ModelMissing(f"the model {name} lacks {', '.join(missing)}: put them into {folder}. {LAYOUT}")
    return folder


def unet_folder(name: str) -> Path:
    """The folder of a UNet alone by its path or its hub id, where it lies there or in ``unet``; else ModelMissing."""
    folder = local_folder(name, UNET_LAYOUT)
    inner = folder / "unet" if (folder / "unet").is_dir() else folder
    missing = [] if (inner / "config.json").is_file() else ["config.json"]
    missing += [] if weights_of(inner, "unet") else [f"{WEIGHTS['unet']}.safetensors"]
    if missing:
        raise ModelMissing(f"the UNet {name} lacks {', '.join(missing)}: put them into {inner}. {UNET_LAYOUT}")
    return inner


def used_files(name: str, unet: str | None = None) -> dict[str, Path]:
    """The files that make a model draw what it draws (weights, configurations, tokenizers), by path in its folder.

    Args:
        unet: the UNet that takes the place of the model's own.
    """
    folder = model_folder(name, unet is not None)
    places = {part: folder / part for part in WEIGHTS}
    if unet is not None:
        places["unet"] = unet_folder(unet)
    files = {f"{part}/config.json": place / "config.json" for part, place in places.items()}
    for part, place in places.items():
        files |= {f"{part}/{path.relative_to(place).as_posix()}": path for path in weights_of(place, part)}
    others = ["model_index.json", "scheduler/scheduler_config.json"]
    others += [f"{part}/{file}" for part in ("tokenizer", "tokenizer_2") for file in TOKENIZERS]
    files |= {file: folder / file for file in others}
    return {file: files[file] for file in sorted(files) if files[file].is_file()}


def weights_digest(name: str, unet: str | None = None) -> dict[str, str]:
    """sha256 of each of `used_files`."""
    return {file: sha256_once(path) for file, path in used_files(name, unet).items()}


def model_digest(name: str, unet: str | None = None) -> str:
    """One digest of ``weights_digest``. A process reads each model's files once."""
    return digest(weights_digest(name, unet))


def weight_files(name: str, unet: str | None = None) -> tuple[MediaFile, ...]:
    """The weights alone, the UNet's first, as sources of what is drawn with them."""
    files = {file: path for file, path in used_files(name, unet).items() if file.endswith(".safetensors")}
    ordered = sorted(files, key=lambda file: (not file.startswith("unet/"), file))
    return tuple(MediaFile(file, files[file].stat().st_size, sha256_once(files[file])) for file in ordered)


def _missing(folder: Path, other_unet: bool) -> list[str]:
    if not (folder / "model_index.json").is_file():
        return ["model_index.json"]
    two = has_part(read_json(folder / "model_index.json"), "text_encoder_2")
    left_out = {*(() if two else ("text_encoder_2",)), *(("unet",) if other_unet else ())}
    parts = [part for part in WEIGHTS if part not in left_out]
    needed = ["scheduler/scheduler_config.json", *(f"{part}/config.json" for part in parts)]
    missing = [file for file in needed if not (folder / file).is_file()]
    missing += [f"{part}/{WEIGHTS[part]}.safetensors" for part in parts if not weights_of(folder / part, part)]
    for part in ("tokenizer", "tokenizer_2") if two else ("tokenizer",):
        whole = (folder / part / "tokenizer.json").is_file()
        missing += [f"{part}/{file}" for file in TOKENIZERS[:2] if not whole and not (folder / part / file).is_file()]
    return missing


def weights_of(folder: Path, part: str) -> list[Path]:
    """The safetensors of a part, whole or in pieces with their index, in full precision before ``fp16``.

    Args:
        folder: of the part, such as ``MODEL/unet``.
    """
    return safetensors_of(folder, WEIGHTS[part])


def has_part(index: Mapping[str, Any], part: str) -> bool:
    """Whether a model_index.json names a part: ``[library, class]``, both null where it is left out."""
    named = index.get(part)
    return bool(named[0] if isinstance(named, list) and named else named)
