"""Triplets a second against the published procedure on the same real captions, and 12 million captions mined.

    python tests/benchmarks/bench_triplets.py [--graphs DIR] [--seconds N] [--captions N] [--triplets N] [--scratch DIR]

Both mine on one core with the real ratings and a threshold of 4.8, twinset under the published rules and under the
strict ones. The other way is that of GeneCIS's released code: rows of a pandas table, ``numpy.random.choice`` among
lists, one triplet after the other (`tests.generators.triplets.published_procedure`); it is stopped after some seconds.
Then as many captions as Conceptual 12M has are sampled from the real ones, each with an image of its own, written
as a finished stage, and mined in a process of its own under both rules: seconds and peak memory of each step. --graphs:
an OUT whose stage ``scene-graphs`` is finished; without it the captions of ../shared/data are parsed first. --captions
0: leave out the second part.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measured import peak_mib, row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.generators.finished_stage import finish, record_index  # noqa: E402
from twinset.contracts.kinds.triplet import PARTS  # noqa: E402
from twinset.contracts.licences.terms import TERMS  # noqa: E402
from twinset.contracts.recipe import STAGES  # noqa: E402
from twinset.generators.scene_graphs.source import GRAMMAR, PHOTO, TEXTS, TYPES, SceneGraphs  # noqa: E402
from twinset.generators.triplets.draws import Draws  # noqa: E402
from twinset.generators.triplets.mining import BLOCK, Miner  # noqa: E402
from twinset.generators.triplets.published import PublishedRules  # noqa: E402
from twinset.generators.triplets.ratings import load_ratings, with_plurals  # noqa: E402
from twinset.generators.triplets.relations import Relations, load_relations  # noqa: E402
from twinset.generators.triplets.source import MOST_BLOCKS, SAID  # noqa: E402
from twinset.generators.triplets.strict import StrictRules  # noqa: E402
from twinset.shards.finished_stage import FinishedStage  # noqa: E402
from twinset.shards.storage import layout  # noqa: E402
from twinset.shards.storage.store import Store  # noqa: E402

SHARED = ROOT.parent / "shared" / "data"
RATINGS = SHARED / "concreteness" / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
CAPTIONS = ("coco_captions_val2017.json", "flickr8k_token.txt", "cc3m_validation.tsv")
THRESHOLD, MIN_IMAGES, MIN_SUPPORT = 4.8, 5, 2
GOAL, GOAL_GIB, GOAL_SECONDS = 1000, 6, 300
PIECE, ROW_GROUP = 200_000, 65_536
COLUMNS = (*TERMS, *TYPES, *GRAMMAR, PHOTO, "confirmed")


def stage_of(out: str) -> FinishedStage:
    return FinishedStage(Store(out), f"{STAGES}/scene-graphs" if Path(out, STAGES).is_dir() else "scene-graphs")


def write_larger(graphs: str, to: Path, captions: int) -> None:
    """A finished stage with captions sampled from another, each with an image of its own."""
    table = stage_of(graphs).read(COLUMNS).combine_chunks()
    of_row = np.asarray(table["caption_id"].to_numpy())
    starts = np.flatnonzero(np.r_[True, of_row[1:] != of_row[:-1]])
    counts = np.diff(np.r_[starts, len(of_row)])
    chosen = np.random.default_rng(0).integers(len(starts), size=captions)
    index = to / "larger" / layout.meta("scene-graphs", "index.parquet")
    index.parent.mkdir(parents=True)
    with pq.ParquetWriter(index, table.schema) as writer:
        for first in range(0, captions, PIECE):
            here = chosen[first : first + PIECE]
            number = np.repeat(np.arange(len(here)), counts[here])
            within = np.arange(len(number)) - np.repeat(np.cumsum(counts[here]) - counts[here], counts[here])
            rows = table.take(starts[here][number] + within)
            ids = pc.utf8_lpad(pa.array(number + first).cast(pa.string()), 9, "0")
            urls = pc.binary_join_element_wise("http://images.example.org/wp-content/uploads/2017/", ids, ".jpg", "")
            for name, column in {"caption_id": ids, "image_id": urls, "image": urls, PHOTO: urls}.items():
                rows = rows.set_column(COLUMNS.index(name), table.schema.field(name), column)
            writer.write_table(rows, row_group_size=ROW_GROUP)
    record_index(to / "larger", "scene-graphs", captions, captions, int(counts[chosen].sum()))


def miner(relations: Relations, ratings: dict[str, float], rules: str) -> Miner:
    if rules == "published":
        return PublishedRules(relations, with_plurals(ratings), THRESHOLD, MIN_IMAGES)
    return StrictRules(relations, ratings, THRESHOLD, MIN_IMAGES, MIN_SUPPORT, distractors=True)


def mine_all(graphs: str, rules: str, triplets: int) -> None:
    """Mine in this process and print what each step took; the parent reads the line."""
    began = time.perf_counter()
    took: dict[str, float] = {}

    def lap(step: str) -> None:
        nonlocal began
        took[step] = time.perf_counter() - began
        began = time.perf_counter()

    scratch = TemporaryDirectory()
    relations = load_relations(stage_of(graphs), Path(scratch.name))
    mining = miner(relations, load_ratings(RATINGS), rules)
    lap("rules")
    table = mining.mine(Draws(0, "triplets"), 0, triplets)
    lap("mine")
    step = MOST_BLOCKS * BLOCK
    for start in range(0, len(table), step):
        parts = [table[part][start : start + step] for part in PARTS]
        relations.rows(pl.concat(parts), *SAID, *TEXTS)
    lap("texts")
    peak, mined = peak_mib() / 1024, table["passes"].count()
    counts = {"relations": mining.pool.funnel["relations"], "triplets": mined, "left_out": len(table) - mined}
    print(json.dumps({"rules": rules, "seconds": took, "cpu": time.process_time(), "gib": peak, **counts}))


def against_the_published_way(graphs: str, seconds: float) -> None:
    import pandas as pd

    from tests.generators.triplets.published_procedure import PublishedProcedure, table_of

    scratch = TemporaryDirectory()
    relations, ratings = load_relations(stage_of(graphs), Path(scratch.name)), load_ratings(RATINGS)
    table = table_of(relations)
    frame = pd.DataFrame(table)
    slow = PublishedProcedure(table, with_plurals(ratings), THRESHOLD, MIN_IMAGES, seed=0, rows=frame.iloc)
    began, found = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        slow.triplet()
        found += 1
    slow_rate = found / passed
    print(f"{relations.captions} captions, {len(table)} relations, one core each")
    print(f"published way {slow_rate:10.1f} triplets/s ({found} in {passed:.0f} s)")
    for rules in ("published", "strict"):
        began = time.perf_counter()
        mining = miner(relations, ratings, rules)
        set_up = time.perf_counter() - began
        for triplets in (100_000, 1_600_000):
            began = time.perf_counter()
            mined = mining.mine(Draws(0, "triplets"), 0, triplets)["passes"].count()
            speed = mined / (time.perf_counter() - began)
            print(
                f"{rules:13} {speed:10.0f} triplets/s over {triplets}: {speed / slow_rate:.0f} x; with its set-up of "
                f"{set_up:.1f} s {triplets / (triplets / speed + set_up) / slow_rate:.0f} x (goal {GOAL} x)"
            )
        row(
            f"{triplets:,} of {relations.captions:,} captions, {rules} rules",
            "the published procedure",
            [speed / slow_rate],
            f"with set-up {triplets / (triplets / speed + set_up) / slow_rate:.0f} ×",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the published way (default 60)")
    parser.add_argument("--captions", type=int, default=12_000_000)
    parser.add_argument("--triplets", type=int, default=1_600_000)
    parser.add_argument("--scratch", type=Path, help="folder for two gigabytes of temporary files")
    parser.add_argument("--mine", nargs=2, metavar=("OUT", "RULES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mine:
        mine_all(*options.mine, options.triplets)
        return
    if not RATINGS.is_file():
        sys.exit("this needs the real ratings and captions of ../shared/data, which are not here")
    with TemporaryDirectory(dir=options.scratch) as scratch:
        graphs = options.graphs
        if graphs is None:
            graphs = str(Path(scratch, "real"))
            captions = [str(SHARED / "captions" / name) for name in CAPTIONS]
            finish(SceneGraphs.model_validate({"kind": "scene-graphs", "captions": captions}), Path(graphs))
        against_the_published_way(graphs, options.seconds)
        if not options.captions:
            return
        write_larger(graphs, Path(scratch), options.captions)
        for rules in ("published", "strict"):
            command = [sys.executable, __file__, "--triplets", str(options.triplets)]
            command += ["--mine", str(Path(scratch, "larger")), rules]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            row(
                f"{found['triplets']:,} of {options.captions:,} captions, {rules} rules",
                f"goal < {GOAL_GIB} GiB and {GOAL_SECONDS} s",
                [found["gib"]],
                f"{sum(found['seconds'].values()):.0f} s, {found['cpu']:.0f} s of CPU",
                unit="GiB",
            )
            steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in found["seconds"].items())
            print(
                f"{options.captions} captions, {found['relations']} relations, {rules} rules: {found['triplets']} "
                f"triplets ({found['left_out']} left out) in {sum(found['seconds'].values()):.0f} s ({steps}), peak "
                f"memory {found['gib']:.2f} GiB (goal < {GOAL_GIB})"
            )


if __name__ == "__main__":
    main()
