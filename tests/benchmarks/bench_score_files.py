"""Time and memory of `twinset eval scores` at 200,000 and 5,000,000 rows, and against resampling rows one by one.

    python tests/benchmarks/bench_score_files.py [--small N] [--large N] [--naive N]

Each table has 6 subsets and is measured in a process of its own, 2,000 resamples, by subset: with groups of 20 rows
that lie together, with the same groups scattered over the file, with scattered groups of a mean of 1.5 rows, with a
group for every row, and as CSV. The naive way draws clusters one by one and takes their rows, for every resample;
--naive resamples of the small table are timed, and 2,000 take as much more. Goals and ratio are of processor time,
which other processes on the machine do not change.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from measured import peak_mib, row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from twinset.evaluation.examples import MATCHING_SCORES  # noqa: E402
from twinset.evaluation.metrics.measure import measure  # noqa: E402

GOAL_SECONDS, GOAL_MB, RESAMPLES, BLOCK = 10, 1_000, 2000, 100_000


def write(path: Path, rows: int, clusters: int, together: bool) -> None:
    """Write a table of scores in blocks; together: rows of a group follow each other."""
    rng, schema = np.random.default_rng(rows), MATCHING_SCORES
    open_writer = pq.ParquetWriter if path.suffix == ".parquet" else pa.csv.CSVWriter
    with open_writer(path, schema) as writer:
        for first in range(0, rows, BLOCK):
            n = min(BLOCK, rows - first)
            inside = np.arange(first, first + n) * clusters // rows
            groups = inside if together else rng.integers(0, clusters, n)
            scores = rng.normal(size=(4, n)).astype(np.float32)
            scores[0] += 0.5
            columns = [
                [f"key-{number:08d}" for number in range(first, first + n)],
                [f"subset-{group % 6}" for group in groups.tolist()],
                ["one", "two"] * (n // 2) + ["one"] * (n % 2),
                [f"video-{group:08d}.mp4" for group in groups.tolist()],
                *scores,
            ]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))


def measured(path: Path, group: str) -> tuple[float, float, float]:
    """Seconds, those of the processor, and peak memory in MB of measuring a file in a process of its own."""
    command = [sys.executable, __file__, "--child", str(path), group]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=3600).stdout
    seconds, busy, peak = json.loads(answer)
    return float(seconds), float(busy), float(peak)


def naive(path: Path, resamples: int) -> float:
    """Processor seconds of so many resamples of whole rows, all and by subset, as one would write it down."""
    table = pq.read_table(path)
    s00, s01, s10, s11 = (table[name].to_numpy() for name in ("s00", "s01", "s10", "s11"))
    subsets, groups = (np.array(table[name].to_pylist()) for name in ("subset", "group"))
    rng, began = np.random.default_rng(0), time.process_time()
    for chosen in (subsets == subsets, *(subsets == name for name in np.unique(subsets))):
        places = np.flatnonzero(chosen)
        _, cluster = np.unique(groups[places], return_inverse=True)
        order = np.argsort(cluster, kind="stable")
        members = np.split(places[order], np.cumsum(np.bincount(cluster))[:-1])
        for _ in range(resamples):
            drawn = np.concatenate([members[one] for one in rng.integers(0, len(members), len(members))])
            text = (s00[drawn] > s01[drawn]) & (s11[drawn] > s10[drawn])
            image = (s00[drawn] > s10[drawn]) & (s11[drawn] > s01[drawn])
            text.mean(), image.mean(), (text & image).mean()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=200_000)
    parser.add_argument("--large", type=int, default=5_000_000)
    parser.add_argument("--naive", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        began = time.perf_counter()
        measure(asked.child[0], ["subset"], resamples=RESAMPLES, group=asked.child[1])
        print(json.dumps([time.perf_counter() - began, time.process_time(), peak_mib()]))
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        kinds = {
            "groups of 20": (0.05, True),
            "groups of 20, scattered": (0.05, False),
            "groups of 1.5, scattered": (0.666, False),
            "every row a group": (1.0, True),
            "groups of 20, CSV": (0.05, True),
        }
        highest = 0.0
        for kind, (share, together) in kinds.items():
            found = []
            for rows in (asked.small, asked.large):
                path = folder / f"scores.{'csv' if 'CSV' in kind else 'parquet'}"
                write(path, rows, int(rows * share), together)
                found.append(measured(path, "group"))
                seconds, busy, peak = found[-1]
                print(f"{kind}: {rows:>9,} rows in {seconds:5.1f} s ({busy:.1f} s CPU), peak {peak:.0f} MB", flush=True)
            fast = "holds" if found[0][1] < GOAL_SECONDS else "does not hold"
            small = "holds" if found[1][2] <= GOAL_MB else "does not hold"
            peaks = [peak for _, _, peak in found]
            highest = max(highest, *peaks)
            growth = f"{peaks[1] - peaks[0]:.0f} MB more for {asked.large / asked.small:.0f} x the rows"
            more = (
                f"{growth}, ratio of peaks {peaks[1] / peaks[0]:.2f}, the goal of at most {GOAL_MB} MB in all {small}"
            )
            print(f"    under {GOAL_SECONDS} s at {asked.small:,} rows {fast}; {more}")
        path = folder / "naive.parquet"
        write(path, asked.small, asked.small // 20, together=False)
        seconds = naive(path, asked.naive) / asked.naive * RESAMPLES
        own = measured(path, "group")[1]
        row(
            f"scores of {asked.small:,} rows, {RESAMPLES:,} resamples by group, CPU time",
            "resampling rows",
            [seconds / own],
            f"a file of {asked.large:,} rows: peak {highest:.0f} MB at most",
        )
        print(f"resampling rows: {seconds:.0f} s CPU for {RESAMPLES:,} resamples; ratio {seconds / own:.0f} x")


if __name__ == "__main__":
    main()
