"""Adversarial refinement against the published procedure, and a selection of four million scored negatives.

    python tests/benchmarks/bench_refinement.py [--pairs N] [--rows N] [--scratch DIR]

Both refine the same drawn gaps, on one core. The other way is that of SugarCrepe's released code: a dict of lists, one
pair after the other (`tests.generators.selection.published_procedure`). Then a stage of scores with as many rows as
TROHN-Text has negatives is written, and selected from in a process of its own: seconds and peak memory.
--rows 0: leave out the second part.
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
import pyarrow.compute as pc
from measured import peak_mib, row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.generators.finished_stage import write_index  # noqa: E402
from tests.generators.selection.published_procedure import refine  # noqa: E402
from tests.generators.selection.scored_stage import context, drawn, selection  # noqa: E402
from twinset.contracts.canonical import sample_key  # noqa: E402
from twinset.contracts.kinds.text_pair import TEXT_SCORES  # noqa: E402
from twinset.generators.selection.refinement import ranks_of, reach_of, refined  # noqa: E402
from twinset.shards.finished_stage import FinishedStage  # noqa: E402
from twinset.shards.storage.store import Store  # noqa: E402

GOAL_GIB = 1.5
DRAWN = 50_000  # rows that differ in more than numbers


def against_the_published_way(pairs: int) -> None:
    """Refine drawn gaps both ways; what is kept of each cell is compared in the tests."""
    rng = np.random.default_rng(0)
    gaps = [rng.normal(0.1, 0.3, pairs).clip(-1, 1), rng.normal(0.05, 0.2, pairs).clip(-1, 1)]
    keys = pa.array([sample_key("scores", f"replace_obj/{number}") for number in range(pairs)])
    rows = list(zip(*(gap.tolist() for gap in gaps), strict=True))
    began = time.perf_counter()
    slow = len(refine(rows))
    slow_seconds = time.perf_counter() - began
    began = time.perf_counter()
    ranks = ranks_of(0, "selected", [keys])
    hashed = time.perf_counter() - began
    began = time.perf_counter()
    fast = int(refined(gaps, [reach_of("vera"), reach_of("cola")], 50, ranks).sum())
    seconds = time.perf_counter() - began
    assert fast == slow, f"{fast} pairs are kept, not {slow}"
    print(f"{pairs:,} pairs, of which {fast:,} are kept, one core each")
    print(f"published way {slow_seconds:8.2f} s")
    print(f"twinset       {seconds:8.2f} s: {slow_seconds / seconds:.1f} x")
    row(
        f"adversarial refinement of {pairs:,} pairs, one core",
        "the published procedure, pair by pair",
        [slow_seconds / seconds],
        f"with a seeded number a pair {slow_seconds / (seconds + hashed):.1f} ×",
    )
    both = seconds + hashed
    print(f"  and {hashed:.2f} s for a seeded number a pair: {slow_seconds / both:.1f} x")


def write_scores(folder: Path, rows: int) -> None:
    """A finished stage of drawn scores; every negative caption is another."""
    table, rng = pa.Table.from_pylist(drawn(DRAWN)).take(pa.array(np.arange(rows) % DRAWN)), np.random.default_rng(0)
    ids = pa.array([f"replace_obj/{number}" for number in range(rows)])
    texts = pc.binary_join_element_wise(pc.cast(pa.array(np.arange(rows)), pa.string()), table["negative_caption"], " ")
    keys = pa.array([sample_key("scores", one) for one in ids.to_pylist()])
    own: dict[str, pa.Array] = {"caption_id": ids, "negative_caption": texts}
    for name in TEXT_SCORES:
        own[name] = pa.array(table[name].to_numpy() + rng.normal(0, 0.02, rows))
    for name, column in own.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    table = table.append_column("identity", pc.binary_join_element_wise('["', ids, '"]', "")).append_column("key", keys)
    write_index(table, folder, "scores", rows, 65_536)


def select_all(folder: str) -> None:
    """Select in this process and print what it took; the parent reads the line."""
    began = time.perf_counter()
    generator = selection().open(context(FinishedStage(Store(folder), "scores")))
    planned = sum(1 for _ in generator.plan())
    generator.reports()
    peak = peak_mib() / 1024
    print(json.dumps({"planned": planned, "seconds": time.perf_counter() - began, "gib": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--scratch", type=Path, help="folder for half a gigabyte of temporary files")
    parser.add_argument("--select", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.select:
        select_all(options.select)
        return
    against_the_published_way(options.pairs)
    if not options.rows:
        return
    with TemporaryDirectory(dir=options.scratch) as scratch:
        write_scores(Path(scratch), options.rows)
        command = [sys.executable, __file__, "--select", scratch]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    row(
        f"selecting {found['planned']:,} of {options.rows:,} scored negatives",
        f"goal < {GOAL_GIB} GiB",
        [found["gib"]],
        f"{found['seconds']:.0f} s",
        unit="GiB",
    )
    print(
        f"{options.rows:,} scored negatives: {found['planned']:,} selected in {found['seconds']:.0f} s, peak memory "
        f"{found['gib']:.2f} GiB (goal < {GOAL_GIB})"
    )


if __name__ == "__main__":
    main()
