"""Peak memory of planning 4,000,000 candidates against that of planning 100,000: the difference should be <= 100 MB.

    python tests/benchmarks/bench_plan.py [--small N] [--large N] [--segments N]

Each size is planned in a process of its own, by the real YouCook2 generator over a synthetic annotation file (videos
of 100 segments, so 4,950 candidates a video) and written as a plan like any other. Printed: the peak resident memory of
both, their difference, and candidates a second.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measured import peak_mib, row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from twinset.contracts.plan import write_plan  # noqa: E402
from twinset.generators.video.youcook2 import YouCook2  # noqa: E402
from twinset.shards.contracts import Context  # noqa: E402
from twinset.shards.storage.store import Store  # noqa: E402

GOAL_MB = 100
SHARD_SIZE = 256
SENTENCE = "spread the mixture number {} over the slices of bread and press them together"


def write_annotation(path: Path, candidates: int, segments: int) -> None:
    """YouCook2's own format, with enough videos of ``segments`` steps each for so many candidates."""
    videos = math.ceil(candidates / math.comb(segments, 2))
    with path.open("w", encoding="utf-8") as stream:
        stream.write('{"database": {')
        for video in range(videos):
            steps = [
                {"id": step, "segment": [7 * step, 7 * step + 5], "sentence": SENTENCE.format(step)}
                for step in range(segments)
            ]
            entry = {"subset": "training", "recipe_type": "101", "annotations": steps}
            stream.write(f'{"," if video else ""}"-Video{video:05d}": {json.dumps(entry)}')
        stream.write("}}")


def plan(annotations: Path, out: Path) -> None:
    """Plan in this process and print what it took; the parent reads the line."""
    generator = YouCook2(kind="youcook2", annotations=annotations, media=out).open(Context("eq-youcook2"))
    store, began = Store(str(out)), time.perf_counter()
    with store.spool() as spool:
        summary = write_plan(generator.plan(), generator.candidate, SHARD_SIZE, spool)
    peak = peak_mib()
    print(json.dumps([summary.planned, len(summary.shards), peak, time.perf_counter() - began]))


def measure(candidates: int, segments: int, folder: Path) -> float:
    """Plan so many candidates in a child process; returns its peak memory in MB."""
    annotations, out = folder / f"{candidates}.json", folder / f"out-{candidates}"
    write_annotation(annotations, candidates, segments)
    command = [sys.executable, __file__, "--child", str(annotations), str(out)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=3600).stdout
    planned, shards, peak, seconds = json.loads(answer)
    print(f"{planned:>9,} candidates, {shards:>6,} shards: peak {peak:7.1f} MB, {planned / seconds:,.0f} candidates/s")
    return float(peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=4_000_000)
    parser.add_argument("--segments", type=int, default=100, help="steps a video")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        plan(*asked.child)
        return
    with TemporaryDirectory() as folder:
        small = measure(asked.small, asked.segments, Path(folder))
        large = measure(asked.large, asked.segments, Path(folder))
    verdict = "holds" if large - small <= GOAL_MB else "does not hold"
    row(
        f"memory of planning {asked.large:,} candidates",
        f"{asked.small:,} candidates",
        [large - small],
        f"goal ≤ {GOAL_MB} MB",
        unit="MB more",
    )
    print(f"difference {large - small:.1f} MB; the goal of at most {GOAL_MB} MB {verdict}")


if __name__ == "__main__":
    main()
