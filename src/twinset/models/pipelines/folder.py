"""The folder of a pipeline, looked at without the libraries that load it: what it says it is, and whether it is whole.

`models.pipelines.opening` opens what is found here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import MediaFile
from twinset.models.files import TOKENIZERS as WORD_FILES
from twinset.models.files import ModelMissing, local_folder, read_json, safetensors_of, sha256_once
from twinset.models.pipelines.classes import ENCODERS, LEFT_OUT, SCHEDULERS, TOKENIZERS, Row, classes, row_for

LAYOUT = (
    "A pipeline's folder is as diffusers saves it: model_index.json, and a folder for each part that it names, with "
    "config.json and weights as safetensors, or with a tokenizer's or scheduler's files"
)
WORDS = ("tokenizer.json", "vocab.json", "spiece.model", "tokenizer.model")  # one of these is there
LARGEST = 1024  # side of the latents of a picture, at most; a picture's is eight times as long as a rule
TIMESTEPS = 100_000  # of a noise schedule, at most: models have a thousand, and each takes memory


@dataclass(frozen=True, slots=True)
class Found:
    """A folder that is whole. name: of the class that opens it. parts: their classes. flags: as of `Row`."""

    folder: Path
    name: str
    row: Row
    parts: Mapping[str, str]
    flags: Mapping[str, bool]

    def files(self) -> dict[str, Path]:
        """What decides the pictures, by path in the folder, sorted: weights, configurations, words."""
        found = [self.folder / "model_index.json"]
        for part, kind in self.parts.items():
            inner = self.folder / part
            settings = {"config.json", "scheduler_config.json", "preprocessor_config.json", *WORD_FILES, *WORDS}
            found += [inner / name for name in settings if (inner / name).is_file()]
            found += weights_of(inner, kind) if has_weights(kind) else []
        return {path.relative_to(self.folder).as_posix(): path for path in sorted(found)}

    @property
    def libraries(self) -> tuple[str, ...]:
        """What loads it."""
        spelt = [self.folder / part for part, kind in self.parts.items() if kind in TOKENIZERS and part != "processor"]
        whole = all((one / "tokenizer.json").is_file() or (one / "vocab.json").is_file() for one in spelt)
        return ("torch", "diffusers", "transformers", *(() if whole else ("sentencepiece",)))

    def weights(self) -> tuple[MediaFile, ...]:
        """The weights alone, those of the denoiser first, as sources of what is drawn with them."""
        files = {file: path for file, path in self.files().items() if file.endswith(".safetensors")}
        ordered = sorted(files, key=lambda file: (not file.startswith(("transformer/", "unet/")), file))
        return tuple(MediaFile(file, files[file].stat().st_size, sha256_once(files[file])) for file in ordered)

    def digest(self) -> str:
        """Of names and contents of `files`, and of the class that opens them. A process reads each file once."""
        return digest([self.name, {file: sha256_once(path) for file, path in self.files().items()}])


def has_weights(kind: str) -> bool:
    """Whether a part of this class is a network."""
    return kind not in TOKENIZERS and kind not in SCHEDULERS


def weights_of(folder: Path, kind: str) -> list[Path]:
    """The safetensors of a part, whole or in pieces with their index, in full precision before ``fp16``."""
    return safetensors_of(folder, _stem(kind))


def _stem(kind: str) -> str:
    return "model" if kind in ENCODERS else "diffusion_pytorch_model"


def find_pipeline(name: str, editing: bool) -> Found:
    """The folder of a pipeline by its path or its hub id.

    Raises:
        ModelMissing: there is none, or it lacks a part, or a file of one.
        WrongUse: it is of another class, or has a part of another class; a link leads out of it.
    """
    folder = local_folder(name, LAYOUT)
    path = folder / "model_index.json"
    if not path.is_file():
        raise ModelMissing(f"the model {name} lacks model_index.json: put it into {folder}. {LAYOUT}")
    index = read_json(path)
    said = index.get("_class_name")
    opened = row_for(said, editing) if isinstance(said, str) else None
    if opened is None:
        what, others = ("edits", "draw") if editing else ("draws", "edit")
        raise WrongUse(
            f"{path}: _class_name is {str(said)[:80]!r}; no class of this name {what} here. Known are "
            f"{', '.join(classes(editing))}; models that {others} have an engine of their own"
        )
    parts = {part: kind for part in opened[1].parts if (kind := _kind(path, index, part, opened[1]))}
    settings = {name for name, value in index.items() if not isinstance(value, list) or name.startswith("_")}
    if strange := sorted({*index} - {*opened[1].parts} - LEFT_OUT - settings):
        raise WrongUse(
            f"{path}: names the parts {', '.join(strange)[:200]}, which {opened[0]} does not have; remove them"
        )
    for part, kind in parts.items():
        _check_part(name, folder / part, kind)
    flags = {
        flag: default if type(said := index.get(flag)) is not bool else said
        for flag, default in opened[1].flags.items()
    }
    return Found(folder, *opened, parts, flags)


def check_side(found: Found) -> None:
    """Raise `WrongUse` where the denoiser's configuration says no side that pictures can have."""
    path = found.folder / ("unet" if "unet" in found.parts else "transformer") / "config.json"
    side = read_json(path).get("sample_size", 1)
    if type(side) is not int or not 1 <= side <= LARGEST:
        raise WrongUse(
            f"{path}: sample_size is {str(side)[:50]}, no side of latents up to {LARGEST}; correct it, or "
            "set resolution"
        )


def _kind(path: Path, index: Mapping[str, Any], part: str, row: Row) -> str:
    """The class of a part that a folder names; empty where it may lack it and does."""
    said, allowed = index.get(part), row.parts[part]
    if said in (None, [None, None]):
        if part in row.optional:
            return ""
        raise ModelMissing(f"{path}: names no {part}; it must be {' or '.join(allowed)}. Get the model's files again")
    library = "transformers" if allowed[0] in ENCODERS or allowed[0] in TOKENIZERS else "diffusers"
    if not isinstance(said, list) or said[:1] != [library] or len(said) != 2 or said[1] not in allowed:
        raise WrongUse(
            f"{path}: {part} is {str(said)[:120]}; only {' or '.join(allowed)} of {library} is opened there, without "
            "code of the folder. Name a model whose parts are its class's own"
        )
    return str(said[1])


def _check_part(name: str, folder: Path, kind: str) -> None:
    """Raise `ModelMissing` or `WrongUse` where a part lacks a file, or its configuration is of another class."""
    files = WORDS if kind in TOKENIZERS else ("config.json",)
    files = {"Qwen2VLProcessor": ("preprocessor_config.json",)}.get(kind, files)
    files = ("scheduler_config.json",) if kind in SCHEDULERS else files
    lacking = [] if any((folder / file).is_file() for file in files) else [" or ".join(files)]
    if has_weights(kind) and not weights_of(folder, kind):
        lacking.append(f"{_stem(kind)}.safetensors")
    if lacking:
        raise ModelMissing(f"the model {name} lacks {', '.join(lacking)}: put them into {folder}. {LAYOUT}")
    if kind in SCHEDULERS:
        path = folder / "scheduler_config.json"
        settings = read_json(path)
        if settings.get("_class_name", kind) != kind:
            raise WrongUse(
                f"{path}: _class_name is {str(settings['_class_name'])[:80]!r}, and model_index.json names {kind}; "
                "write the one that is meant into both"
            )
        steps = settings.get("num_train_timesteps", 1000)
        if type(steps) is not int or not 1 <= steps <= TIMESTEPS:
            raise WrongUse(f"{path}: num_train_timesteps must be a whole number, 1 to {TIMESTEPS}; get the file again")
        if settings.get("stochastic_sampling"):
            raise WrongUse(f"{path}: stochastic_sampling draws noise without a seed; set it to false")
    elif has_weights(kind):
        path, key, wanted = folder / "config.json", "_class_name", kind
        if kind in ENCODERS:
            key, wanted = "model_type", ENCODERS[kind]
        if (said := read_json(path).get(key)) != wanted:
            raise WrongUse(
                f"{path}: {key} is {str(said)[:80]!r}, but model_index.json says {kind}, which is {wanted!r}; get the "
                "model's files again, all from one model"
            )
