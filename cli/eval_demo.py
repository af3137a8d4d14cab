"""``twinset eval demo``: score the demo with small models, without any download."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from cli.eval_run import progress


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "score the demo with the small CLIP that ships and with random weights, and write a report; no download"
    touring = commands.add_parser("demo", help=text, description=text)
    touring.set_defaults(run=demo)
    touring.add_argument(
        "--data",
        type=Path,
        default=Path("out/demo"),
        metavar="DIR",
        help="folder of the demo, which is built first if it is not there (default: out/demo)",
    )
    touring.add_argument(
        "--out",
        type=Path,
        default=Path("out/eval-demo"),
        metavar="OUT",
        help="folder of the run (default: out/eval-demo)",
    )
    touring.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="where encoded images and texts are kept (default: ~/.cache/twinset/features)",
    )


def demo(asked: argparse.Namespace) -> None:
    """``twinset eval demo``."""
    import twinset
    from evaluation.demo import score_demo
    from shards.records import subsets_in
    from shards.storage.store import Store

    with contextlib.redirect_stdout(sys.stderr):
        if not subsets_in(Store(str(asked.data))):
            print(f"{asked.data}: no dataset there; building the demo, which takes minutes")
            twinset.build("demo", str(asked.data))
        with progress() as on_progress:
            scored, page = score_demo(asked.data, asked.out, asked.cache, on_progress)
    for one in scored:
        print(f"{one.benchmark}, {one.model}: {one.rows:,} scored")
    print(page)
