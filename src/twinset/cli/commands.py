"""The commands that make and read datasets, in terms of `twinset`'s functions."""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import twinset
from twinset.cli.command import Dataset, LogForm, Only, Place, Recipe, Settings, Workers, answer
from twinset.cli.terminal import Log, in_json, print_table, progress, say, tell
from twinset.contracts.errors import WrongUse, missing_words

if TYPE_CHECKING:
    from twinset.contracts.recipe import Recipe as LoadedRecipe

Runner = Literal["threads", "processes", "dask"]


def plan(
    recipe: Recipe, *, out: Place | None = None, only: Only = (), set_: Settings = (), like: Place | None = None
) -> None:
    """Show what a recipe names outside of its folder, count what its stages would make, and estimate what that takes.

    Media and models are not needed; models and GPUs that are not found are listed.

    Args:
        out: write the plan there, which needs the models too; shards that the recipe or an input changed become stale
        like: estimate from the receipts of this dataset, such as those of a trial, where OUT has none
    """
    from twinset.contracts.recipe.allowed import WORDS, outside
    from twinset.contracts.recipe.loading import locate

    loaded = twinset.load_recipe(recipe, set_).only(only)
    named = outside(loaded, locate(recipe)[1])
    for what, places in named.items():
        for key, values in places.items():
            tell("\n".join(f"{WORDS[what]} {value} ({key})" for value in values))
    document = {**twinset.plan(loaded, out, like=like), "outside": named}
    for line in document["not_found"]:
        tell(f"not found here: {line}")

    def show() -> None:
        print_counts(document, planning=True)
        estimates = {name: row["estimate"] for name, row in {**document["stages"], **document["subsets"]}.items()}
        if known := [{"stage": name, **cost} for name, cost in estimates.items() if cost is not None]:
            print_table(known)
        for name in [name for name, cost in estimates.items() if cost is None]:
            say(f"{name}: what it takes is not known; build a few samples, and name their folder with --like")

    answer(document, show)


def build(
    recipe: Recipe,
    *,
    out: Place,
    only: Only = (),
    set_: Settings = (),
    workers: Workers = 0,
    runner: Runner = "threads",
    log: LogForm = "text",
    stage: str | None = None,
    plan_only: bool = False,
    part: str | None = None,
    finish: bool = False,
) -> None:
    """Build a recipe, or resume it; in Prefect where PREFECT_API_URL is set.

    Args:
        out: folder or fsspec URL of the dataset
        runner: what makes the shards
        stage: for schedulers, with one of the next three: this stage of the recipe alone
        plan_only: finish the stages that it reads, plan it, and stop
        part: K/N: make part K of N of its planned shards, where K is 0 to N - 1, and stop
        finish: finish it; without --stage all stages and the dataset, all shards of which are made
    """
    Log.json = log == "json"
    step = {"stage": stage, "plan_only": plan_only, "part": part, "finish": finish}
    counts = _built(twinset.load_recipe(recipe, set_).only(only), out, workers, runner, step)
    answer(counts, (lambda: print_counts(counts)) if "subsets" in counts else None)


def parse(
    captions: tuple[str, ...],
    *,
    out: Place,
    workers: Workers = 0,
    log: LogForm = "text",
    pipeline: str | None = None,
    confirm: str | None = None,
) -> None:
    """Write the scene graphs (relations) of captions, or resume it: a build of one stage.

    Args:
        captions: files and folders of captions
        out: folder or fsspec URL of the dataset
        pipeline: installed spaCy pipeline, or its folder
        confirm: second pipeline: says whether it finds each relation
    """
    from twinset.contracts.recipe import parse_recipe

    Log.json = log == "json"
    for path in captions:  # the source's own message names a setting, and this command has no --set
        if not os.path.exists(path):
            raise WrongUse(f"{path}: there is no such file or folder; name captions that exist")
    models = {"pipeline": pipeline, "confirm": confirm}
    source: dict[str, Any] = {"kind": "scene-graphs", "captions": [os.path.abspath(path) for path in captions]}
    source |= {name: os.path.abspath(at) if os.path.isdir(at) else at for name, at in models.items() if at is not None}
    recipe = parse_recipe({"name": "parse", "subsets": {"scene-graphs": {"source": source, "shard_size": 2048}}})
    counts = _built(recipe, out, workers, "threads", {})
    for reason, where in twinset.status(out)["subsets"]["scene-graphs"]["examples"]:
        tell(f"{where}: left out, {reason}")
    answer(counts, lambda: print_counts(counts))


def status(dataset: Dataset, *, missing: Path | None = None) -> int:
    """Show what is done, missing and stale, and what is wrong; exit code 1 where something is. Verify reads contents.

    Args:
        missing: write the media that stages lack into this file: a TSV of stage, media, state and url, a line each
    """
    counts = twinset.status(dataset, missing)
    answer(counts, lambda: print_counts(counts))
    return 1 if any(row["problems"] for part in ("stages", "subsets") for row in counts[part].values()) else 0


def verify(dataset: Dataset, *, only: Only = (), media: bool = False) -> int:
    """Hash everything again and name every problem; exit code 1 where there is one.

    Args:
        media: hash the source media too
    """
    document = twinset.verify(dataset, only, media)
    rows = []
    for name, row in {**document["stages"], **document["subsets"]}.items():
        for problem in row["problems"]:
            tell(problem)
        rows.append({"stage": name, "shards": row["shards"], "samples": row["kept"], "problems": len(row["problems"])})
    answer(document, lambda: print_table(rows))
    return 1 if any(row["problems"] for row in rows) else 0


def look(dataset: Dataset, *, only: Only = (), count: int = 24) -> None:
    """Write contact sheets: a PNG for each subset, one HTML page.

    Args:
        count: samples a subset; it is part of file names
    """
    answer({"written": twinset.look(dataset, only, count)})


def export(dataset: Dataset, *, format_: str, out: Place, only: Only = (), only_licence: tuple[str, ...] = ()) -> None:
    """Write the dataset in another tool's format.

    Args:
        format_: name of the format: twinset kinds lists them
        out: new folder of the export
        only_licence: only samples of this licence, such as CC-BY-4.0; of several licences, where all are named
    """
    answer({"samples": twinset.export(dataset, format_, out, only, only_licence), "out": out})


def publish(dataset: Dataset, *, to: Place, only: Only = (), public: bool = False, update: bool = False) -> None:
    """Publish the finished dataset into a folder or, as one commit, to the Hugging Face Hub.

    It is checked, and gets a card of all subsets, previews and checksums. The same command goes on where it stopped.

    Args:
        to: hf://datasets/ORG/NAME, which is created private, or a new folder
        public: make the dataset on the Hub public once all is there
        update: replace what the dataset on the Hub holds
    """
    answer(twinset.publish(dataset, to, only, public, update))


def _built(recipe: "LoadedRecipe", out: str, workers: int, runner: Runner, step: Mapping[str, Any]) -> dict[str, Any]:
    in_prefect = os.environ.get("PREFECT_API_URL") and not any(step.values())
    if Log.json:
        logging.getLogger("twinset.shards").setLevel(logging.INFO)
        if in_prefect:
            raise WrongUse("--log json: Prefect keeps the log; unset PREFECT_API_URL, or leave --log out")
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if in_prefect:
            from twinset.flows.from_here import build_in_prefect

            return build_in_prefect(recipe, out, workers, runner)
        with progress() as rows:
            return twinset.build(recipe, out, workers=workers, runner=runner, progress=rows, **step)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """End this process at once, and its children with it: whatever is half-done has no receipt."""
    if (spool := sys.modules.get("twinset.shards.storage.spool")) is not None:
        children = spool.psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(spool.psutil.Error):
                child.kill()
        spool.psutil.wait_procs(children, 1)
        spool.Spool(None).sweep()  # the children's temporary files, which none of them removes now
    words = "twinset: interrupted; the same command resumes"
    os.write(2, f"{in_json(message=words) if Log.json else words}\n".encode())  # `print` may be what is interrupted
    os._exit(1)


def print_counts(counts: Mapping[str, Any], planning: bool = False) -> None:
    """Print what `twinset.plan`, `build` or `status` returned. planning: without what only shards can tell."""
    stages, rows = {**counts.get("stages", {}), **counts["subsets"]}, list[dict[str, Any]]()
    for name, row in stages.items():
        shards = "?" if row["shards"] is None else f"{row['shards']:,}"
        shards = f"{row['done']:,} of {shards}" if row.get("done") is not None else shards
        shards += f", {len(row['stale'])} stale" if row.get("stale") else ""
        state = row.get("state", "")
        columns = {"stage": name, "planned": row["planned"], "kept": row.get("kept"), "shards": state or shards}
        if planning:
            columns = {"stage": name, "reads": ", ".join(row["reads"]), "planned": row["planned"], "shards": shards}
        rows.append({**columns, **({"state": state} if planning else {"rejected": row["rejected"]})})
    print_table(rows)
    if planning and any(row["planned"] is None for row in stages.values()):
        say("?: known once the stages that it reads are built")
    for name, row in stages.items():
        if row.get("kinds"):
            say(f"{name}:", ", ".join(f"{count:,} {kind}" for kind, count in row["kinds"].items()))
        for reason, count in row.get("excluded", {}).items():
            meaning = row.get("meanings", {}).get(reason)
            say(f"{name}: {count:,} left out by the plan: {reason}" + (f" ({meaning})" if meaning else ""))
        for shard, why in row.get("stale", {}).items():
            say(f"{name} shard {shard}: stale, {why}")
        if waiting := row.get("waiting"):
            say(f"{name}: {missing_words(**waiting)}; ask people with twinset review OUT")
        if spent := row.get("spent"):
            say(f"{name}: asked language models for", ", ".join(f"{what} {count}" for what, count in spent.items()))
        for problem in row.get("problems", []):
            say(problem)
    unfinished = any(row.get("missing") or row.get("stale") or row.get("state") for row in stages.values())
    if unfinished and not planning and not any(row.get("waiting") for row in stages.values()):
        say("Not finished: unless a build is running, run the same twinset build again")
