"""What `twinset.train` trains, by name. torch is imported once settings, folders and files were checked."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from twinset.contracts.errors import WrongUse, suggested
from twinset.shards.storage.whole_file import local_folder_of
from twinset.training.runs.settings import OnProgress

#: Class of the settings and class of the task, in ``settings`` and ``train`` of the folder of that name.
TASKS = {
    "clip": ("ClipSettings", "ClipTask"),
    "combiner": ("CombinerSettings", "CombinerTask"),
    "fusion": ("FusionSettings", "FusionTask"),
    "detectors": ("DetectorSettings", "DetectorTask"),
}
TaskName = Literal["clip", "combiner", "fusion", "detectors"]


def train_task(task: str, given: Mapping[str, Any], out: Path, on_progress: OnProgress | None = None) -> dict[str, Any]:
    """As `twinset.train`. given: settings of the task, with its data."""
    out = local_folder_of(out)
    if task not in TASKS:
        raise WrongUse(f"task {task!r}: {suggested(str(task), TASKS)}")
    try:
        settings = check_task(task, given, out)
        train = import_module("twinset.training.runs.trainer").train
        kind = getattr(import_module(f"twinset.training.{task}.train"), TASKS[task][1])
    except ImportError as error:
        raise WrongUse(f"{error}; pip install 'twinset[models]'") from error
    return dict(train(kind, settings, out, on_progress))


def settings_class(task: str) -> type[BaseModel]:
    """The settings of a task."""
    kind: type[BaseModel] = getattr(import_module(f"twinset.training.{task}.settings"), TASKS[task][0])
    return kind


def check_task(task: str, given: Mapping[str, Any], out: Path, models: bool = True) -> Any:
    """The settings; raises `WrongUse` for what is wrong about them, the folder, the data or the models' files.

    models: whether the models' files must be there.
    """
    from twinset.evaluation.scorers.kinds import check_model
    from twinset.models.encoders.open_clip_files import find_architecture, find_checkpoint
    from twinset.training.combiner.settings import CIRR
    from twinset.training.examples.example_set import check_place
    from twinset.training.runs.folder import check_folder
    from twinset.training.runs.settings import EncoderSettings, checked

    settings: Any = checked(settings_class(task), dict(given))
    check_folder(out)
    for place in (*settings.data, *settings.validation):
        if task != "combiner" or not place.startswith(CIRR):
            check_place(place, "triplets" if task == "combiner" else "pairs")
    if models and not isinstance(settings, EncoderSettings):
        check_model(settings.model)
    elif models and settings.weights is None:
        find_architecture(settings.model)
    elif models:
        find_checkpoint(f"open_clip:{settings.model}:{settings.weights}", (settings.model, settings.weights))
    return settings
