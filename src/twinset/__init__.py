"""twinset for notebooks and for other people's parts: what the command line does, as functions.

    import twinset

    twinset.plan("demo")                                    # counts, nothing written
    twinset.build("demo", "out/demo", only=["eq-ag"])       # or resume it
    for sample in twinset.load("out/demo", "eq-ag"):
        sample.images["image0"], sample.texts["caption0"], sample.json

The contracts to write a source or a filter against are here as well: see docs/extending.md. Every name is imported
when it is first used, so that a part of twinset can be imported without the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

_CHECKOUT = Path(__file__).parents[2]
_IN_CHECKOUT = Path(__file__).parent == _CHECKOUT / "src/twinset" and (_CHECKOUT / "pyproject.toml").is_file()
if _IN_CHECKOUT and not Path(__file__).with_name("flows").is_dir():
    # Windows and archives make files of links: the rooms that stand at the top are imported from there.
    __path__.append(str(_CHECKOUT))

from twinset.contracts.canonical import names_in  # noqa: E402

if TYPE_CHECKING:
    from twinset.contracts.candidate import Candidate, CaptionedCandidate
    from twinset.contracts.canonical import generator_for, identity_of, sample_key, sha256_of_file
    from twinset.contracts.errors import BuildFailed, DecisionsMissing, TwinsetError, WrongUse
    from twinset.contracts.kinds.kind import Stored
    from twinset.contracts.kinds.pair import Pair
    from twinset.contracts.kinds.samples import Drop, Frame, Keep, Rejected, Score, TableRows, Verdict
    from twinset.contracts.parts import Filter, LeftOut
    from twinset.contracts.recipe import Recipe, load_recipe
    from twinset.contracts.references import Reference
    from twinset.contracts.source import AnnotationFile, MediaFolderPath, Place, StageName
    from twinset.evaluation.from_python import compare, evaluate, scores
    from twinset.filters.contract import check_filter
    from twinset.generators.caption_scores.contract import check_scorer
    from twinset.generators.contract import check_source
    from twinset.generators.image_files import ImageFiles, ImageFolderSource, UnusableImage, VideoFolderSource
    from twinset.generators.image_pairs import NamedPairCandidate, NamedPairSource
    from twinset.shards.contracts import Context, RowCandidate, RowStage, Source, TableStage
    from twinset.stages.finish import Progress
    from twinset.stages.publish import publish
    from twinset.training.runs.settings import OnProgress as OnStep
    from twinset.training.tasks import TaskName

__all__ = ["build", "compare", "evaluate", "export", "load", "look", "plan", "publish", "scores", "status", "train"]
__all__ += ["verify"]
__all__ += ["AnnotationFile", "BuildFailed", "Candidate", "CaptionedCandidate", "Context"]
__all__ += ["DecisionsMissing", "Drop", "Filter", "Frame", "ImageFiles"]
__all__ += ["ImageFolderSource", "Keep", "LeftOut", "MediaFolderPath", "NamedPairCandidate"]
__all__ += ["NamedPairSource", "Pair", "Place", "Recipe", "Reference", "Rejected", "Score", "Source"]
__all__ += ["RowCandidate", "RowStage", "TableStage"]
__all__ += ["StageName", "TableRows", "TwinsetError", "UnusableImage", "Verdict", "VideoFolderSource", "WrongUse"]
__all__ += [
    "check_filter",
    "check_scorer",
    "check_source",
    "generator_for",
    "identity_of",
    "load_recipe",
    "sample_key",
    "sha256_of_file",
]

#: By module, the names that are imported when they are first used: contracts to write a part against, and functions.
_NAMES = {
    "twinset.evaluation.from_python": "compare evaluate scores",
    "twinset.filters.contract": "check_filter",
    "twinset.generators.caption_scores.contract": "check_scorer",
    "twinset.generators.contract": "check_source",
    "twinset.generators.image_files": "ImageFiles ImageFolderSource UnusableImage VideoFolderSource",
    "twinset.generators.image_pairs": "NamedPairCandidate NamedPairSource",
    "twinset.contracts.candidate": "Candidate CaptionedCandidate",
    "twinset.contracts.canonical": "generator_for identity_of sample_key sha256_of_file",
    "twinset.contracts.errors": "BuildFailed DecisionsMissing TwinsetError WrongUse",
    "twinset.contracts.recipe": "Recipe load_recipe",
    "twinset.contracts.references": "Reference",
    "twinset.contracts.source": "AnnotationFile MediaFolderPath Place StageName",
    "twinset.contracts.parts": "Filter LeftOut",
    "twinset.shards.contracts": "Context RowCandidate RowStage Source TableStage",
    "twinset.contracts.kinds.pair": "Pair",
    "twinset.contracts.kinds.samples": "Drop Frame Keep Rejected Score TableRows Verdict",
    "twinset.stages.publish": "publish",
}
_DEFINED_IN = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'twinset' has no attribute {name!r}")
    return getattr(import_module(_DEFINED_IN[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def plan(
    recipe: str | Path | Recipe,
    out: str | Path | None = None,
    only: str | Iterable[str] = (),
    settings: str | Iterable[str] = (),
    like: str | Path | None = None,
) -> dict[str, Any]:
    """Count what a recipe would make, and estimate what that takes; media are not needed.

    Args:
        recipe: name of a shipped recipe, path of a YAML file, or a loaded recipe.
        out: folder or fsspec URL below which plans are written; nothing is written when None.
        only: subsets; all when empty.
        settings: overrides ``KEY.PATH=VALUE``.
        like: a dataset, such as a trial of a few candidates, that tells what stages take where ``out`` does not.

    Returns:
        ``{"subsets": {NAME: counts}, "stages": {NAME: counts}}`` in the order of the DAG, each with what it ``reads``,
        and a ``state``: ``counted``, ``waits for`` a stage that is not built, or how many shards lie below ``out``.
        ``estimate``: what all of it takes (`stages.overview.plan_states`); None if unknown.
        ``outside``: ``{"reads", "writes", "hosts", "variables"}``, what the recipe names outside of its folder, each
        by key path. ``not_found``: models and GPUs that the recipe names and that are not here, each with a remedy.
    """
    from twinset.contracts.recipe import Recipe
    from twinset.contracts.recipe.allowed import outside
    from twinset.contracts.recipe.loading import locate
    from twinset.shards.storage.spool import temporary_folder
    from twinset.shards.storage.store import Store
    from twinset.stages.job import Job
    from twinset.stages.overview import plan_states

    loaded = _recipe(recipe, settings).only(names_in(only))
    named = outside(loaded, Path.cwd() if isinstance(recipe, Recipe) else locate(str(recipe))[1])
    with temporary_folder() as nothing:
        job = Job(loaded, Store(str(out or nothing)))
        job.check_inputs(["annotations"] if out is None else ["annotations", "models"])
        states = plan_states(job, out is not None, None if like is None else Store(str(like)))
    return {**states, "outside": named, "not_found": job.not_found()}


def build(
    recipe: str | Path | Recipe,
    out: str | Path,
    only: str | Iterable[str] = (),
    settings: str | Iterable[str] = (),
    workers: int = 0,
    runner: Literal["threads", "processes", "dask"] = "threads",
    progress: Progress | None = None,
    *,
    stage: str | None = None,
    plan_only: bool = False,
    part: str | None = None,
    finish: bool = False,
) -> dict[str, Any]:
    """Build a recipe from this process, or resume it; whatever is done stays.

    For schedulers a build can be made in steps, each a call of its own that names one of ``plan_only``, ``part`` and
    ``finish``: each stage is planned when those that it reads are made, parts are made side by side, and the dataset is
    finished at the end.

    Args:
        recipe, only, settings: as `plan`.
        out: folder or fsspec URL of the dataset.
        workers: shards at a time; 0: one a core.
        runner: ``threads`` where a source allows it, ``processes`` for all, or ``dask``: the cluster at
            ``DASK_SCHEDULER_ADDRESS``.
        progress: reported to while it runs (`stages.finish.Progress`).
        stage: the stage of a step; needed where the recipe has several.
        plan_only: finish the stages that ``stage`` reads, plan it, and stop.
        part: ``K/N``, K from 0 to N - 1: make this part of the planned shards of ``stage``, and stop.
        finish: finish ``stage``, or without it all stages and the dataset; all shards are made.

    Returns:
        ``{"subsets": {NAME: {"planned", "kept", "rejected", "shards", "excluded"}}}``, of a recipe of stages alone
        ``stages`` as well; of a step ``{"stage", "shards"}`` with ``planned``, how many were ``made``, or all counts.

    Raises:
        WrongUse: before any work, when the recipe or an input is wrong.
        BuildFailed: some shards could not be made; the same call resumes.
        DecisionsMissing: people have not decided enough; all that does not wait for them is built.
    """
    from twinset.contracts.errors import WrongUse
    from twinset.shards.storage.store import Store
    from twinset.stages import in_parts
    from twinset.stages.build import build_here
    from twinset.stages.finish import Silent
    from twinset.stages.job import Job

    job = Job(_recipe(recipe, settings).only(names_in(only)), Store(os.fspath(out)))
    steps = [plan_only, part is not None, finish]
    if stage is None and not any(steps):
        return build_here(job, workers, runner, progress or Silent())
    if sum(steps) != 1:
        raise WrongUse("a step of a build is one of plan-only, part and finish; name one")
    if plan_only:
        return in_parts.plan_stage(job, stage)
    if finish:
        return in_parts.finish_parts(job, stage, progress or Silent())
    assert part is not None
    return in_parts.make_part(job, stage, part, workers, runner, progress or Silent())


def status(out: str | Path, missing: str | Path | None = None) -> dict[str, Any]:
    """What is done, missing and stale below ``out``: ``{"subsets": {NAME: counts}, "stages": {NAME: counts}}``.

    Args:
        missing: file to write: a TSV of the media that stages lack, with URLs where annotations have them.
    """
    from twinset.shards.storage.store import Store
    from twinset.stages import overview
    from twinset.stages.overview import write_missing

    counts = overview.status(Store(os.fspath(out)))
    if missing is not None:
        write_missing(Store(os.fspath(out)), Path(missing))
    return counts


def verify(out: str | Path, only: str | Iterable[str] = (), media: bool = False) -> dict[str, Any]:
    """Hash everything below ``out`` again; of each stage its counts and its ``problems`` (`stages.overview.Problem`).

    Args:
        media: hash the source media too.
    """
    from twinset.shards.storage.store import Store
    from twinset.stages import overview

    return overview.verify(Store(os.fspath(out)), names_in(only), media)


def look(out: str | Path, only: str | Iterable[str] = (), count: int = 24) -> list[str]:
    """Write contact sheets and one HTML page below ``out``; returns their places.

    Args:
        count: samples of each subset; other than 24 it is part of the names of the files.
    """
    from twinset.cards.page import write_look
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import published

    store = Store(os.fspath(out))
    with store.tidied():
        written = write_look(store, published(store, names_in(only), stages=True), count)
    return [f"{store.root}/{path}" for path in written]


def load(out: str | Path, subset: str, limit: int | None = None) -> Iterator[Stored[Any]]:
    """The samples of a subset in plan order, images encoded as they are stored; holds one at a time."""
    from twinset.shards.read import read_samples
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import published

    store = Store(os.fspath(out))
    return read_samples(store, published(store, [subset])[0], limit)


def export(
    out: str | Path, format: str, to: str | Path, only: str | Iterable[str] = (), only_licence: str | Iterable[str] = ()
) -> int:
    """Write subsets in another tool's format (`shards.export.formats.EXPORTERS`); returns the number of samples."""
    from twinset.shards.export import formats
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import published

    store = Store(os.fspath(out))
    return formats.export(store, published(store, names_in(only)), format, Path(to), names_in(only_licence))


def train(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    task: TaskName = "clip",
    on_progress: OnStep | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Train a model, or resume a run that was stopped; a finished one is left as it is.

    Args:
        data: ``DIR``, ``DIR:SUBSET`` or ``DIR:SUBSET*2``, as ``twinset train clip --data`` takes them.
        out: folder of the run; docs/training.md lists its files.
        task: a dual encoder of open_clip, a Combiner, a fusion encoder, or detectors of what is synthetic.
        on_progress: called after each step with the steps taken, those of the run, and what is logged of this one.
        settings: of the task (docs/reference.md), such as ``objective="negative-texts"``.

    Returns:
        ``{"model", "best", "last", "sha256", "best_step", "steps", "resumed_at", "loss", "validation", "report"}``:
        what ``twinset eval run --model`` takes, weights, the sha256 of the last, and figures of the last step.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, or data are broken; the same call resumes from the last checkpoint.
    """
    from twinset.training.tasks import train_task

    given = {"data": names_in(data), **settings}
    return train_task(task, given, Path(out), on_progress)


def _recipe(recipe: str | Path | Recipe, settings: str | Iterable[str]) -> Recipe:
    from twinset.contracts.errors import WrongUse
    from twinset.contracts.recipe import Recipe, load_recipe

    if isinstance(recipe, Recipe):
        if names_in(settings):
            raise WrongUse("settings: overrides belong to a recipe by name or path; change the loaded recipe instead")
        return recipe
    return load_recipe(str(recipe), names_in(settings))
