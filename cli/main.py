"""The ``twinset`` command. Exit codes: 0 done, 1 shards failed (the same command resumes), 2 wrong use."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli import graph_commands
from manifests.errors import TwinsetError, WrongUse
from shards.storage.store import Store

_NOTHING: dict[str, Any] = {"planned": 0, "kept": 0, "rejected": {}, "shards": 0}  # of a subset without a plan

RUNNERS = ("threads", "processes", "ray", "dask")  # those of flows.runners, which imports Prefect


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    asked = _parser().parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr, format="%(message)s", level=logging.INFO if asked.verbose else logging.WARNING
    )
    try:
        return int(asked.run(asked))
    except WrongUse as error:
        print(f"twinset: {error}", file=sys.stderr)
        return 2
    except (TwinsetError, OSError) as error:
        remedy = ["remove the folder that lies where a file belongs"] if isinstance(error, IsADirectoryError) else []
        print("\n".join([f"twinset: {error}", *getattr(error, "__notes__", []), *remedy]), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("twinset: interrupted; the same command resumes", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="twinset", description=__doc__)
    parser.add_argument("--version", action="version", version=f"twinset {version('twinset')}")
    parser.add_argument("--verbose", action="store_true", help="show Prefect's and twinset's own log lines")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    plan = command("plan", _plan, "count what a recipe would make; media are not needed")
    build = command("build", _build, "build a recipe, or resume it")
    for added in (plan, build):
        added.add_argument("recipe", metavar="RECIPE", help="name of a shipped recipe, or path of a YAML file")
        added.add_argument("--only", action="append", default=[], metavar="SUBSET", help="this subset; may be repeated")
        added.add_argument("--set", action="append", default=[], metavar="KEY.PATH=VALUE", help="override a setting")
        added.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    build.add_argument("--verbose", action="store_true", default=argparse.SUPPRESS, help="as before the command")
    plan.add_argument("--out", type=_place, help="write the plan below this folder or URL")
    build.add_argument("--out", type=_place, required=True, help="folder or fsspec URL of the dataset")
    build.add_argument("--workers", type=int, default=0, metavar="N", help="shards at a time (default: one a core)")
    build.add_argument("--runner", choices=RUNNERS, default="threads", help="Prefect task runner")
    status = command("status", _status, "what is done, missing and stale")
    verify = command("verify", _verify, "hash everything again and name every problem")
    look = command("look", _look, "draw contact sheets: PNG for each subset, one HTML page")
    export = command("export", _export, "write the dataset in another tool's format")
    for added in (status, verify, look, export):
        added.add_argument("out", type=_place, metavar="OUT", help="folder or fsspec URL of the dataset")
    for added in (status, verify):
        added.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    for added in (verify, look, export):
        added.add_argument("--only", action="append", default=[], metavar="SUBSET", help="this subset; may be repeated")
    verify.add_argument("--media", action="store_true", help="hash the source media too")
    look.add_argument(
        "--count",
        type=int,
        default=24,
        metavar="N",
        help="samples a subset (default 24); another number is part of the names of what is drawn",
    )
    export.add_argument("--format", required=True, choices=("eqben", "openclip", "genecis"))
    export.add_argument("--to", type=_place, required=True, metavar="DIR", help="new folder for the export")
    parse = command("parse", graph_commands.parse, "write the scene graphs (relations) of captions, or resume it")
    parse.add_argument("captions", nargs="+", metavar="CAPTIONS", help="files and folders of captions")
    parse.add_argument("--to", type=_place, required=True, metavar="DIR", help="folder or fsspec URL for the relations")
    parse.add_argument(
        "--pipeline",
        default="en_captions_sm",
        metavar="NAME|PATH",
        help="installed spaCy pipeline or its folder (default en_captions_sm, which comes with twinset)",
    )
    parse.add_argument("--workers", type=int, default=0, metavar="N", help="processes (default: one a core)")
    parse.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    return parser


def _place(text: str) -> str:
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("name a folder or a URL such as s3://bucket/prefix")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: a name that is not UTF-8 cannot be recorded") from error
    return text


def _plan(asked: argparse.Namespace) -> int:
    from manifests.recipe import load_recipe
    from stages.inputs import check_inputs
    from stages.prepare import count_plan, prepare

    recipe = load_recipe(asked.recipe, asked.set).only(asked.only)
    check_inputs(recipe, media=False, models=asked.out is not None)
    subsets: dict[str, dict[str, Any]] = {}
    for name in recipe.subsets:
        if asked.out:
            stage = prepare(Store(asked.out), recipe, name)
            counts = {"planned": stage.planned, "kept": 0, "rejected": {}, "shards": stage.shards}
            subsets[name] = {**counts, "excluded": stage.excluded}
        else:
            subsets[name] = count_plan(recipe, name)
    _print(asked, {"subsets": subsets})
    return 0


def _build(asked: argparse.Namespace) -> int:
    from flows.in_process import build

    if asked.workers < 0:
        raise WrongUse("--workers: a number of shards at a time, 0 for one a core")
    counts = build(asked.recipe, asked.out, asked.only, asked.set, asked.workers, asked.runner, quiet=not asked.verbose)
    _print(asked, counts)
    return 0


def _status(asked: argparse.Namespace) -> int:
    from generators.scene_graphs.progress import holds_graphs
    from stages.prepare import asked_recipe, missing_media, missing_problem, state_of

    store = Store(asked.out)
    if holds_graphs(store):
        return graph_commands.status(asked, store)
    planned, lost = _chosen(store, [])
    subsets = {name: {**_NOTHING, "done": 0, "problems": [why]} for name, why in lost.items()}
    for name in planned:
        recipe = asked_recipe(store, name)
        state = state_of(store, recipe, name)
        stale = {f"{number:05d}": why for number, why in sorted(state.stale.items())}
        states = {"done": len(state.done), "missing": len(state.missing), "stale": stale}
        problem = missing_problem(recipe, state)
        media = {"missing_media": missing_media(state), "problems": [problem] if problem else []}
        subsets[name] = {**state.counts(), **states, **media}
    _print(asked, {"subsets": dict(sorted(subsets.items()))})
    return 0


def _verify(asked: argparse.Namespace) -> int:
    from generators.scene_graphs.progress import holds_graphs
    from shards.media.source_media import media_of
    from stages.makers import workshop
    from stages.prepare import asked_recipe, missing_problem, state_of
    from stages.verify import verify_subset

    store = Store(asked.out)
    if holds_graphs(store):
        return graph_commands.verify(asked, store)
    planned, lost = _chosen(store, asked.only)
    found: dict[str, dict[str, Any]] = {name: {**_NOTHING, "problems": [why]} for name, why in lost.items()}
    for name in planned:
        recipe = asked_recipe(store, name)
        state = state_of(store, recipe, name)
        media = media_of(recipe.subsets[name].source) if asked.media else None
        problems = list(verify_subset(store, state, workshop(recipe, name).generator.candidate, media))
        problems += [problem] if (problem := missing_problem(recipe, state)) else []
        found[name] = {**state.counts(), "problems": problems}
    if asked.json:
        print(json.dumps({"subsets": found}))
    for name, counts in found.items():
        for problem in counts["problems"]:
            print(problem, file=sys.stderr)
        if not asked.json:
            numbers = {"shard": counts["shards"], "sample": counts["kept"], "problem": len(counts["problems"])}
            print(f"{name}:", ", ".join(f"{number} {what}{'s' * (number != 1)}" for what, number in numbers.items()))
    return 1 if any(counts["problems"] for counts in found.values()) else 0


def _look(asked: argparse.Namespace) -> int:
    from cards.page import write_look

    if asked.count < 1:
        raise WrongUse("--count: at least 1 sample a subset")
    store = Store(asked.out)
    for path in write_look(store, _subsets(store, asked.only), asked.count):
        print(f"{store.root}/{path}")
    return 0


def _export(asked: argparse.Namespace) -> int:
    from shards.export.formats import FORMATS, export

    store = Store(asked.out)
    count = export(store, _subsets(store, asked.only), asked.format, Path(asked.to))
    print(f"{count:,} {FORMATS[asked.format].takes.name}s in {asked.to}")
    return 0


def _chosen(store: Store, only: list[str]) -> tuple[list[str], dict[str, str]]:
    """The planned subsets below OUT, and those without a plan with what to do about each; of ``only`` if not empty."""
    from stages.status import subsets_in, unplanned_in

    planned, lost = subsets_in(store), unplanned_in(store)
    if not planned and not lost:
        raise WrongUse(f"{store.root} holds no dataset; make one with twinset build RECIPE --out {store.root}")
    for name in only:
        if name not in planned and name not in lost:
            raise WrongUse(f"{store.root} has no subset {name!r}; it has: {', '.join(planned)}")
    return (
        [name for name in planned if not only or name in only],
        {name: why for name, why in lost.items() if not only or name in only},
    )


def _subsets(store: Store, only: list[str]) -> list[str]:
    """The subsets to show or export; raises `WrongUse` when there are none, or one that is asked for has no plan."""
    planned, lost = _chosen(store, only)
    if lost and (only or not planned):
        raise WrongUse("\n".join(lost.values()))
    return planned


def _print(asked: argparse.Namespace, counts: dict[str, Any]) -> None:
    """The counts as JSON, or as a table: of a plan without what only shards can tell."""
    if asked.json:
        print(json.dumps(counts))
        return
    from rich.console import Console
    from rich.table import Table

    from cards.reasons import MEANINGS

    planning = asked.run is _plan
    table = Table("subset", "planned", *([] if planning else ["kept", "rejected"]), "shards")
    for name, row in counts["subsets"].items():
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in row["rejected"].items())
        shards = f"{row['done']} of {row['shards']}" if "done" in row else str(row["shards"])
        if row.get("stale"):
            shards += f", {len(row['stale'])} stale"
        table.add_row(name, f"{row['planned']:,}", *([] if planning else [f"{row['kept']:,}", reasons]), shards)
    Console().print(table)
    for name, row in counts["subsets"].items():
        for reason, count in row.get("excluded", {}).items():
            meaning = f" ({MEANINGS[reason]})" if reason in MEANINGS else ""
            print(f"{name}: {count:,} left out by the plan: {reason}{meaning}")
        for number, why in row.get("stale", {}).items():
            print(f"{name} shard {number}: stale, {why}")
        for problem in row.get("problems", []):
            print(problem)


if __name__ == "__main__":
    sys.exit(main())
