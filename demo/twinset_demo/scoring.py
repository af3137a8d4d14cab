"""The demo's subsets as small benchmarks, and two small models that answer them: a tour without any download.

One is the small CLIP that ships, which knows painted scenes and no more; the other has random weights.
"""

from collections.abc import Sequence
from pathlib import Path

from twinset.evaluation.benchmarks.built_dataset import BuiltDataset, Part, parts_of
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.report.page import write_report
from twinset.evaluation.run import OnProgress, WrittenScores, run
from twinset.models.encoders.contract import Running

#: The second is a real architecture that encodes the demo in seconds.
ENCODERS = ("small-clip", "random:ViT-S-32-alt:0")
RULES = ("image+text", "image-only", "text-only")
GALLERIES = "demo-galleries"


def demo_parts(data: Path) -> list[Part]:
    """The parts of a built demo, or of any dataset that ``twinset build`` wrote; without triplets, which are to train.

    Raises:
        WrongUse: the folder holds no such dataset, or one that is not finished.
    """
    return [part for part in parts_of(BuiltDataset(data), "demo", "Demo") if part.kind != "triplet"]


def score_demo(
    data: Path, out: Path, cache: Path | None = None, on_progress: OnProgress | None = None
) -> tuple[list[WrittenScores], Path]:
    """Score a built demo with two small encoders, and write the report; returns the scores and the page."""
    parts: Sequence[Benchmark] = demo_parts(data)
    running, scored = Running(), []
    for asked, models in (
        ([part for part in parts if part.name != GALLERIES], ENCODERS),
        ([part for part in parts if part.name == GALLERIES], [f"{rule}:{ENCODERS[0]}" for rule in RULES]),
    ):
        if asked:
            scored += run(asked, models, out, cache, running, on_progress)
    return scored, write_report(out, {part.name: part for part in parts})[0]
