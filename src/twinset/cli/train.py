"""``twinset train``: models on the twins. The options of a task are its settings, as their class explains them."""

import inspect
import os
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from twinset.cli.command import Commands, Device, Imported, Settings, answer
from twinset.cli.terminal import progress, say, tell

#: What each task trains, for the list of commands.
TASKS = {
    "clip": "Train a dual encoder of open_clip; the defaults are BiVLC's published recipe.",
    "combiner": "Train a Combiner of images and conditions on triplets; the defaults are GeneCIS's.",
    "fusion": "Train the matching head of a fusion encoder (BLIP, ViLT, FLAVA) on mined negatives.",
    "detectors": "Train detectors of natural and synthetic captions and images (BiVLC).",
}


class TrainCommands(Commands):
    """The commands below ``train``; the settings of a task are imported when it runs."""

    def imported(self) -> Iterator[Imported]:
        """As `Commands.imported`."""
        for task, text in TASKS.items():
            yield Imported(EntryPoint(task, f"{__name__}:{task}", ""), text)
        yield from super().imported()


def __getattr__(task: str) -> Callable[..., None]:
    """The function of a task, which `TrainCommands` imports."""
    if task not in TASKS:
        raise AttributeError(task)

    def run(*, out: Path, **given: Any) -> None:
        import twinset

        settings = {name: value for name, value in given.items() if value not in (None, False, ())}
        if settings.get("weights") == "random":
            settings["weights"] = None
        first = not int(os.environ.get("RANK", "0"))  # of torchrun's processes
        with progress() as rows:
            settings |= {"task": task, "on_progress": rows.trained if first else None}
            result = twinset.train(settings.pop("data"), out, **settings)
        if first:
            answer(result)

    run.__doc__ = f"{TASKS[task]}\n\nThe same command resumes a run that was stopped, to the same bytes."
    run.__signature__ = inspect.Signature([*_parameters(task)])  # type: ignore[attr-defined]
    return run


def _parameters(task: str) -> Iterator[inspect.Parameter]:
    """The settings of a task as parameters: texts, which the settings check, and absent unless they are given."""
    from twinset.cli.kinds import settings_of
    from twinset.training.tasks import settings_class

    fields, required = settings_class(task).model_fields, inspect.Parameter.empty
    kinds: dict[str, tuple[Any, Any, str]] = {"out": (Path, required, "folder of the run")}
    for setting in settings_of(settings_class(task)):
        name, default = setting["setting"], setting["default"]
        text = setting["meaning"] + (f" (default: {default})" if default not in ("required", "null", "false") else "")
        kind: Any = str | None
        absent: Any = required if default == "required" else None
        if name in ("data", "validation"):
            kind, absent = tuple[str, ...], required if default == "required" else ()
        elif get_origin(fields[name].annotation) is tuple:
            kind = tuple[str, str] | None
        elif fields[name].annotation is bool:
            kind, absent = bool, False
        kinds[name] = kind, absent, text
    for name, (kind, absent, text) in kinds.items():
        kind = Annotated[kind, typer.Option(help=text)]
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=absent, annotation=kind)


def grid(design: Path, *, out: Path, set_: Settings = (), only: tuple[str, ...] = (), device: Device = "cpu") -> None:
    """Train and score every arm of a paper's table, and write its figures beside the paper's.

    The same command resumes. Data and benchmarks are settings: --set data.NAME=PLACE, --set folders.BENCHMARK=DIR.

    Args:
        design: eqben, eqben_data, eqben_fusion, bivlc or genecis; or a YAML file
        out: folder of runs, scores and tables
        only: this arm, and what it begins from
    """
    from twinset.models.encoders.contract import Running
    from twinset.training.grids.design import load_design
    from twinset.training.grids.run import run_grid

    tables = run_grid(load_design(design, set_).only(only), out, Running(device), tell)
    answer({"tables": tables}, lambda: say(tables[0].read_text("utf-8"), *map(str, tables), sep="\n"))
