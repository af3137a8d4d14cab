"""What the ``twinset`` command does with scene graphs: parse captions, and tell of a folder that it parsed into."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from manifests.errors import WrongUse
from shards.storage.store import Store


def parse(asked: argparse.Namespace) -> int:
    """``twinset parse``: captions to relations."""
    from generators.scene_graphs.parse import parse_captions

    if asked.workers < 0:
        raise WrongUse("--workers: a number of processes, 0 for one a core")
    workers = asked.workers or os.cpu_count() or 1
    index = parse_captions([Path(path) for path in asked.captions], asked.to, asked.pipeline, workers)
    file = f"{asked.captions[0]}: " if len(asked.captions) == 1 else ""  # places in several name the file themselves
    for example in index.examples:
        print(f"{file}{example.place}: left out, {example.reason}", file=sys.stderr)
    if (more := sum(index.left_out.values()) - len(index.examples)) > 0:
        print(f"{file}{more:,} more left out", file=sys.stderr)
    if asked.json:
        print(
            json.dumps(index.model_dump(include={"captions", "without", "relations", "shards", "left_out", "digest"}))
        )
        return 0
    print(f"{index.captions:,} captions, {index.relations:,} relations, {index.without:,} captions without one")
    for reason, count in index.left_out.items():
        print(f"{count:,} left out: {reason}")
    return 0


def status(asked: argparse.Namespace, store: Store) -> int:
    """``twinset status`` of scene graphs: what is done, missing and stale, by the sizes of files."""
    from generators.scene_graphs.progress import AGAIN, graph_progress, read_plan

    try:
        state = graph_progress(store, *read_plan(store), hashed=False)
    except WrongUse as error:
        counts = {**_NOTHING, "problems": [str(error)]}
    else:
        unfinished = [f"{len(state.todo)} shards are not done; {AGAIN}"] if state.todo else []
        counts = {**state.counts(), "problems": unfinished}
    _tell(asked, counts)
    if not asked.json:
        for number, why in counts["stale"].items():
            print(f"shard {number}: stale, {why}")
        for problem in counts["problems"]:
            print(problem)
    return 0


def verify(asked: argparse.Namespace, store: Store) -> int:
    """``twinset verify`` of scene graphs: everything hashed again; exit code 1 when there is a problem."""
    from generators.scene_graphs.progress import graph_progress, read_plan
    from generators.scene_graphs.verify import graph_problems

    if asked.only or asked.media:
        raise WrongUse(f"{store.root} holds scene graphs, not a dataset: leave out --only and --media")
    try:
        state = graph_progress(store, *read_plan(store))
    except WrongUse as error:
        counts = {**_NOTHING, "problems": [str(error)]}
    else:
        counts = {**state.counts(), "problems": list(graph_problems(store, state))}
    _tell(asked, counts)
    for problem in counts["problems"]:
        print(problem, file=sys.stderr)
    return 1 if counts["problems"] else 0


_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("planned", "parsed", "relations", "without", "shards", "done", "missing"), 0),
    "left_out": {},
    "stale": {},
}  # of a plan that cannot be read


def _tell(asked: argparse.Namespace, counts: dict[str, Any]) -> None:
    if asked.json:
        print(json.dumps({"scene_graphs": counts}))
        return
    print(
        f"{counts['done']:,} of {counts['shards']:,} shards, {counts['parsed']:,} of {counts['planned']:,} captions: "
        f"{counts['relations']:,} relations, {counts['without']:,} captions without one"
    )
    for reason, count in counts["left_out"].items():
        print(f"{count:,} left out: {reason}")
