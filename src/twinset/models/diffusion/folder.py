"""The folder of a pipeline, looked at without the libraries that load it: what it says it is, and whether it is whole.

`models.diffusion.pipeline` opens what is found here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import MediaFile
from twinset.models.diffusion.classes import (
    ALLOWED,
    ENCODERS,
    LEFT_OUT,
    OPTIONAL,
    PIPELINES,
    PROCESSORS,
    SCHEDULERS,
    TOKENIZERS,
    Row,
    class_for,
    classes,
)
from twinset.models.files import (
    TOKENIZERS as WORD_FILES,
)
from twinset.models.files import (
    ModelMissing,
    check_files,
    check_type,
    check_whole,
    local_folder,
    read_json,
    safetensors_of,
    sha256_once,
)

INDEX = "model_index.json"
LAYOUT = (
    f"A pipeline's folder is as diffusers saves it: {INDEX}, and a folder for each part that it names, with "
    "config.json and weights as safetensors, or with a tokenizer's or scheduler's files"
)
UNET_LAYOUT = "A UNet is config.json with weights as safetensors, in the folder that is named or in its unet"
LIBRARIES = ("torch", "diffusers", "transformers")
SETTINGS = ("config.json", "scheduler_config.json", "preprocessor_config.json", "processor_config.json", *WORD_FILES)
LARGEST = 1024  # side of the latents of a picture, at most; a picture's is eight times as long as a rule
TIMESTEPS = 100_000  # of a noise schedule, at most: models have a thousand, and each takes memory


@dataclass(frozen=True, slots=True)
class PipelineFolder:
    """A folder that is whole.

    name: of the class that opens it. index: what model_index.json says. classes, places: of its parts.
    """

    folder: Path
    name: str
    index: Mapping[str, Any]
    classes: Mapping[str, str]
    places: Mapping[str, Path]

    @property
    def row(self) -> Row:
        """What is particular to its class."""
        return PIPELINES[self.name]

    @property
    def denoiser(self) -> str:
        """Name of the part that denoises."""
        return "unet" if "unet" in self.classes else "transformer"

    def files(self) -> dict[str, Path]:
        """What decides the pictures, by path in the folder, sorted: weights, configurations, words."""
        files = {INDEX: self.folder / INDEX}
        for part, place in self.places.items():
            paths = [place / name for name in SETTINGS if (place / name).is_file()]
            paths += weights_of(place, self.classes[part])
            files |= {f"{part}/{path.relative_to(place).as_posix()}": path for path in paths}
        return dict(sorted(files.items()))

    def weights(self) -> tuple[MediaFile, ...]:
        """The weights alone, those of the denoiser first, as sources of what is drawn with them."""
        files = {file: path for file, path in self.files().items() if file.endswith(".safetensors")}
        ordered = sorted(files, key=lambda file: (not file.startswith(f"{self.denoiser}/"), file))
        return tuple(MediaFile(file, files[file].stat().st_size, sha256_once(files[file])) for file in ordered)

    def digest(self) -> str:
        """Of names and contents of `files`, and of the class that opens them. A process reads each file once."""
        return digest([self.name, {file: sha256_once(path) for file, path in self.files().items()}])


def weights_of(place: Path, kind: str) -> list[Path]:
    """The safetensors of a part, whole or in pieces with their index, in full precision before ``fp16``; none of what
    is not a network.
    """
    if kind in (*TOKENIZERS, *SCHEDULERS, *PROCESSORS):
        return []
    return safetensors_of(place, _stem(kind))


def find_pipeline(name: str, editing: bool, unet: str | None = None) -> PipelineFolder:
    """The folder of a pipeline by its path or its hub id.

    Args:
        unet: the folder or hub id of a UNet that takes the place of the model's own, which the folder may lack.

    Raises:
        ModelMissing: there is none, or it lacks a part, or a file of one.
        WrongUse: it is of another class, or has a part of another class; a link leads out of it.
    """
    folder = local_folder(name, LAYOUT)
    check_files(name, folder, [[INDEX]], LAYOUT)
    path = folder / INDEX
    index = read_json(path)
    kind = class_for(index.get("_class_name"), editing)
    if not kind:
        verb, other_verb = ("edits", "draw") if editing else ("draws", "edit")
        raise WrongUse(
            f"{path}: _class_name is {str(index.get('_class_name'))[:80]!r}; no class of this name {verb} here. Known "
            f"are {', '.join(classes(editing))}; models that {other_verb} have an engine of their own"
        )
    parts = PIPELINES[kind].parts
    named = {part for part, value in index.items() if isinstance(value, list) and not part.startswith("_")}
    if unknown := sorted(named - {*parts} - LEFT_OUT):
        raise WrongUse(f"{path}: names the parts {', '.join(unknown)[:200]}, which {kind} does not have; remove them")
    classes_of = {part: _class_of(path, index.get(part), part) for part in parts}
    classes_of = {part: class_name for part, class_name in classes_of.items() if class_name}
    places = {part: folder / part for part in classes_of}
    if unet is not None:
        if "unet" not in places:
            raise WrongUse(f"{path}: {kind} has no UNet that another could replace; leave unet out")
        places["unet"] = unet_folder(unet)
    for part, place in places.items():
        _check_part(unet if part == "unet" and unet else name, place, classes_of[part])
    pipeline = PipelineFolder(folder, kind, index, classes_of, places)
    check_whole(places[pipeline.denoiser] / "config.json", "sample_size", LARGEST, absent=1)
    return pipeline


def unet_folder(name: str) -> Path:
    """Where a UNet alone lies, by its path or hub id: there, or in ``unet``; raises as `models.files.local_folder`."""
    folder = local_folder(name, UNET_LAYOUT)
    return folder / "unet" if (folder / "unet").is_dir() else folder


def _class_of(path: Path, named: Any, part: str) -> str:
    """The class of a part that a folder names; empty where it may lack it and does."""
    allowed = ALLOWED[part.rstrip("_23")]
    if named in (None, [None, None]):
        if part in OPTIONAL:
            return ""
        raise ModelMissing(f"{path}: names no {part}; it must be {' or '.join(allowed)}. Get the model's files again")
    library = "transformers" if {*allowed} & {*ENCODERS, *TOKENIZERS, *PROCESSORS} else "diffusers"
    if not isinstance(named, list) or named[:1] != [library] or len(named) != 2 or named[1] not in allowed:
        raise WrongUse(
            f"{path}: {part} is {str(named)[:120]}; only {' or '.join(allowed)} of {library} is opened there, without "
            "code of the folder. Name a model whose parts are its class's own"
        )
    return str(named[1])


def _stem(kind: str) -> str:
    return "model" if kind in ENCODERS else "diffusion_pytorch_model"


def _check_part(name: str, place: Path, kind: str) -> None:
    """Raise `ModelMissing` or `WrongUse` where a part lacks a file, or its configuration is of another class."""
    if kind in TOKENIZERS:
        check_files(name, place, [["tokenizer.json", "vocab.json"]], LAYOUT)
    elif kind in PROCESSORS:
        check_files(name, place, [["preprocessor_config.json"]], LAYOUT)
    elif kind in SCHEDULERS:
        path = place / "scheduler_config.json"
        check_files(name, place, [[path.name]], LAYOUT)
        check_type(path, (kind,), "_class_name")
        check_whole(path, "num_train_timesteps", TIMESTEPS, absent=1000)
        if read_json(path).get("stochastic_sampling"):
            raise WrongUse(f"{path}: stochastic_sampling draws noise without a seed; set it to false")
    else:
        path = place / "config.json"
        check_files(name, place, [[path.name]], LAYOUT)
        if not weights_of(place, kind):
            raise ModelMissing(f"the model {name} lacks {_stem(kind)}.safetensors: put it into {place}. {LAYOUT}")
        if kind in ENCODERS:
            check_type(path, (ENCODERS[kind],))
        else:
            check_type(path, (kind,), "_class_name")
