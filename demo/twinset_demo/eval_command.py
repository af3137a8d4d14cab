"""``twinset eval demo``: score the demo with small models, without any download."""

import argparse
import sys
from dataclasses import asdict
from typing import Any

from twinset.cli.eval_run import progress
from twinset.cli.options import add_cache, add_command, answer
from twinset_demo.folders import add_demo_folders


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset eval``."""
    text = "score the demo with the small CLIP that ships and with random weights, and write a report; no download"
    touring = add_command(commands, "demo", demo, text)
    add_demo_folders(touring, "the demo", "out/demo", "out/eval-demo")
    add_cache(touring)


def demo(asked: argparse.Namespace) -> None:
    """``twinset eval demo``."""
    import twinset
    from twinset_demo.eval_demo import score_demo

    if not any(asked.data.glob("*/_meta/stage.json")):
        print(f"{asked.data}: no dataset there; building the demo, which takes minutes", file=sys.stderr)
        twinset.build("demo", str(asked.data))
    with progress() as on_progress:
        scored, page = score_demo(asked.data, asked.out, asked.cache, on_progress)
    lines = [f"{one.benchmark}, {one.model}: {one.rows:,} scored" for one in scored]
    document = {"scores": [asdict(one) for one in scored], "report": page}
    answer(asked, document, lambda: print(*lines, page, sep="\n"))
