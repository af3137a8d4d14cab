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

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from twinset.evaluation.run import OnProgress
    from twinset.filters.contract import check_filter
    from twinset.generators.caption_scores.contract import check_scorer
    from twinset.generators.contract import check_source
    from twinset.generators.image_files import ImageFiles, UnusableImage
    from twinset.generators.media_sources import ImageFolderSource, VideoFolderSource
    from twinset.generators.named_pairs import NamedPairCandidate, NamedPairGenerator, NamedPairSource
    from twinset.manifests.candidate import Candidate, CaptionedCandidate
    from twinset.manifests.canonical import generator_for, identity_of, sample_key, sha256_of_file
    from twinset.manifests.errors import BuildFailed, DecisionsMissing, TwinsetError, WrongUse
    from twinset.manifests.recipe import Recipe, load_recipe
    from twinset.manifests.source import AnnotationFile, MediaFolderPath, Place, Reference, StageName
    from twinset.shards.contracts import (
        CaptionFilter,
        Context,
        Filter,
        FrameFilter,
        Generator,
        LeftOut,
        PairFilter,
        Source,
    )
    from twinset.shards.kinds.kind import Stored
    from twinset.shards.kinds.pair import Pair
    from twinset.shards.kinds.samples import Drop, Frame, Keep, Rejected, Score, TableRows, Verdict
    from twinset.stages.progress import Progress

#: Contracts to write a part against, by the module that defines them.
_CONTRACTS = {
    "twinset.filters.contract": ("check_filter",),
    "twinset.generators.caption_scores.contract": ("check_scorer",),
    "twinset.generators.contract": ("check_source",),
    "twinset.generators.image_files": ("ImageFiles", "UnusableImage"),
    "twinset.generators.media_sources": ("ImageFolderSource", "VideoFolderSource"),
    "twinset.generators.named_pairs": ("NamedPairCandidate", "NamedPairGenerator", "NamedPairSource"),
    "twinset.manifests.candidate": ("Candidate", "CaptionedCandidate"),
    "twinset.manifests.canonical": ("generator_for", "identity_of", "sample_key", "sha256_of_file"),
    "twinset.manifests.errors": ("BuildFailed", "DecisionsMissing", "TwinsetError", "WrongUse"),
    "twinset.manifests.recipe": ("Recipe", "load_recipe"),
    "twinset.manifests.source": ("AnnotationFile", "MediaFolderPath", "Place", "Reference", "StageName"),
    "twinset.shards.contracts": (
        "CaptionFilter",
        "Context",
        "Filter",
        "FrameFilter",
        "Generator",
        "LeftOut",
        "PairFilter",
        "Source",
    ),
    "twinset.shards.kinds.pair": ("Pair",),
    "twinset.shards.kinds.samples": ("Drop", "Frame", "Keep", "Rejected", "Score", "TableRows", "Verdict"),
}
_PLACES = {name: module for module, names in _CONTRACTS.items() for name in names}

__all__ = [
    "AnnotationFile",
    "BuildFailed",
    "Candidate",
    "CaptionFilter",
    "CaptionedCandidate",
    "Context",
    "DecisionsMissing",
    "Drop",
    "Filter",
    "Frame",
    "FrameFilter",
    "Generator",
    "ImageFiles",
    "ImageFolderSource",
    "Keep",
    "LeftOut",
    "MediaFolderPath",
    "NamedPairCandidate",
    "NamedPairGenerator",
    "NamedPairSource",
    "Pair",
    "PairFilter",
    "Place",
    "Recipe",
    "Reference",
    "Rejected",
    "Score",
    "Source",
    "StageName",
    "TableRows",
    "TwinsetError",
    "UnusableImage",
    "Verdict",
    "VideoFolderSource",
    "WrongUse",
    "build",
    "check_filter",
    "check_scorer",
    "check_source",
    "evaluate",
    "export",
    "generator_for",
    "identity_of",
    "load",
    "load_recipe",
    "plan",
    "sample_key",
    "sha256_of_file",
    "status",
    "train",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'twinset' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def plan(
    recipe: str | Recipe, out: str | None = None, only: Iterable[str] = (), settings: Iterable[str] = ()
) -> dict[str, Any]:
    """Count what a recipe would make; media are not needed.

    Args:
        recipe: name of a shipped recipe, path of a YAML file, or a loaded recipe.
        out: folder or fsspec URL below which plans are written; nothing is written when None.
        only: subsets; all when empty.
        settings: overrides ``KEY.PATH=VALUE``.

    Returns:
        ``{"subsets": {NAME: counts}, "stages": {NAME: counts}}`` in the order of the DAG, each with what it ``reads``,
        and a ``state``: ``counted``, ``waits for`` a stage that is not built, or how many shards lie below ``out``.
    """
    from twinset.shards.storage.store import Store
    from twinset.stages.job import Job, check_inputs
    from twinset.stages.overview import plan_states

    loaded = _recipe(recipe, settings).only(only)
    check_inputs(loaded, ["annotations"] if out is None else ["annotations", "models"])
    with tempfile.TemporaryDirectory() as nothing:
        return plan_states(Job(loaded, Store(out or nothing)), write=out is not None)


def build(
    recipe: str | Recipe,
    out: str,
    only: Iterable[str] = (),
    settings: Iterable[str] = (),
    workers: int = 0,
    runner: Literal["threads", "processes"] = "threads",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Build a recipe in this process and its children, or resume it; whatever is done stays.

    Args:
        recipe, only, settings: as `plan`.
        out: folder or fsspec URL of the dataset.
        workers: shards at a time; 0: one a core.
        runner: ``threads`` where a source allows it, or ``processes`` for all.
        progress: reported to while it runs (`stages.progress.Progress`).

    Returns:
        ``{"subsets": {NAME: {"planned", "kept", "rejected", "shards"}}}``.

    Raises:
        WrongUse: before any work, when the recipe or an input is wrong.
        BuildFailed: some shards could not be made; the same call resumes.
        DecisionsMissing: people have not decided enough; all that does not wait for them is built.
    """
    from twinset.stages.run_here import build_here

    return build_here(_recipe(recipe, settings).only(only), out, workers, runner, progress)


def status(out: str) -> dict[str, Any]:
    """What is done, missing and stale below ``out``: ``{"subsets": {NAME: counts}, "stages": {NAME: counts}}``."""
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import of_all, stage_status

    return of_all(Store(out), (), stage_status)


def verify(out: str, only: Iterable[str] = (), media: bool = False) -> dict[str, Any]:
    """Hash everything below ``out`` again; of each stage its counts and its ``problems``, sentences with a remedy.

    Where a package that made a stage is not installed, ``unchecked`` says which one, and what was checked all the same.

    Args:
        media: hash the source media too.
    """
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import of_all, stage_verdict, verdict_on_bytes

    return of_all(Store(out), only, lambda job, name: stage_verdict(job, name, media), verdict_on_bytes)


def load(out: str, subset: str, limit: int | None = None) -> Iterator[Stored[Any]]:
    """The samples of a subset in plan order, images encoded as they are stored; holds one at a time."""
    from twinset.shards.read import read_samples
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import published

    store = Store(out)
    return read_samples(store, published(store, [subset])[0], limit)


def export(out: str, format: str, to: str | Path, only: Iterable[str] = ()) -> int:
    """Write subsets in another tool's format (`shards.export.formats.EXPORTERS`); returns the number of samples."""
    from twinset.shards.export import formats
    from twinset.shards.storage.store import Store
    from twinset.stages.overview import published

    store = Store(out)
    return formats.export(store, published(store, only), format, Path(to))


def evaluate(
    benchmarks: Iterable[tuple[str, str | Path]],
    models: Sequence[str],
    out: str | Path,
    *,
    subsets: Sequence[str] = (),
    cache: str | Path | None = None,
    device: Literal["cpu", "gpu"] = "cpu",
    batch: int = 32,
    threads: int = 0,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Score benchmarks with models and write the report, or resume it; what was encoded stays in the cache.

    Args:
        benchmarks: names of `evaluation.benchmarks.BENCHMARKS`, each with its folder.
        models: as ``twinset eval run --model`` takes them.
        out: folder; scores go to ``scores/BENCHMARK/MODEL.parquet`` below it, beside ``report.html`` and
            ``results.json``.
        subsets: of the benchmarks that are read; all when empty.
        cache: folder of features; ``~/.cache/twinset/features`` by default.
        batch: images, texts or pairs of a pass.
        threads: torch's; 0: one a core.
        on_progress: called with benchmark, model and the number of examples done.

    Returns:
        ``{"scores": [{"benchmark", "model", "path", "rows", "computed", "left_out", "cut_texts", "figures"}],
        "report": PATH}``.

    Raises:
        WrongUse: a model or a benchmark is wrong, or nothing of one can be scored.
    """
    from twinset.evaluation.run import read_and_run
    from twinset.models.encoders.contract import Running

    running = Running(device, batch, threads)
    places = [(name, Path(folder)) for name, folder in benchmarks]
    return read_and_run(places, models, Path(out), subsets, Path(cache) if cache else None, running, on_progress)


def train(
    data: Sequence[str],
    out: str | Path,
    *,
    on_progress: Callable[[int, int, dict[str, Any]], None] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Train a dual encoder of open_clip, or resume a run that was stopped; a finished one is left as it is.

    Args:
        data: ``DIR``, ``DIR:SUBSET`` or ``DIR:SUBSET*2``, as ``twinset train clip --data`` takes them.
        out: folder of the run; docs/training.md lists its files.
        on_progress: called after each step with the steps taken, those of the run, and what is logged of this one.
        settings: of `training.clip.settings.ClipSettings`, such as ``objective="negative-texts"``.

    Returns:
        ``{"best", "last", "sha256", "best_step", "steps", "resumed_at", "loss", "validation", "report"}``: weights,
        the sha256 of the last, and figures of the last step.

    Raises:
        WrongUse: settings, model or data are wrong, or ``out`` holds another run.
        BuildFailed: the loss is not finite, or data are broken; the same call resumes from the last checkpoint.
    """
    from twinset.training.clip.settings import settings_from
    from twinset.training.clip.train import train_clip

    done = train_clip(settings_from({"data": tuple(data), **settings}), Path(out), on_progress)
    last = done.history[-1]
    return {
        "best": str(done.best),
        "last": str(done.last),
        "sha256": done.digest,
        "best_step": done.best_step,
        "steps": last["step"],
        "resumed_at": done.resumed_at,
        "loss": last["loss"],
        "validation": last.get("validation", {}),
        "report": str(Path(out) / "report.html"),
    }


def _recipe(recipe: str | Recipe, settings: Iterable[str]) -> Recipe:
    from twinset.manifests.errors import WrongUse
    from twinset.manifests.recipe import Recipe, load_recipe

    if isinstance(recipe, Recipe):
        if list(settings):
            raise WrongUse("settings: overrides belong to a recipe by name or path; change the loaded recipe instead")
        return recipe
    return load_recipe(recipe, settings)
