"""Triplets a second against the published procedure on the same real captions, and 3.3 million captions mined.

    python tests/benchmarks/bench_triplets.py [--graphs DIR] [--seconds N] [--captions N] [--triplets N] [--scratch DIR]

Both mine under the published rules, on one core, with the real ratings and a threshold of 4.8. The other way is that of
GeneCIS's released code: rows of a pandas table, ``numpy.random.choice`` among lists, one triplet after the other
(`tests.generators.triplets.published_procedure`); it is stopped after some seconds. Then as many captions as Conceptual
Captions has are drawn from the real ones, each with an image of its own, written as ``twinset parse`` writes them, and
mined in a process of its own under both rules: seconds and peak memory of each step. --graphs: a folder of ``twinset
parse``; without it the captions of ../shared/data are parsed first. --captions 0: leave out the second part.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from generators.scene_graphs.caption_plan import read_captions  # noqa: E402
from generators.scene_graphs.caption_sources import caption_sources  # noqa: E402
from generators.scene_graphs.make import SPANS, WORDS, make_shard  # noqa: E402
from generators.scene_graphs.parse import SHARD_SIZE, parse_captions  # noqa: E402
from generators.scene_graphs.pipelines import find_pipeline  # noqa: E402
from generators.scene_graphs.prepare import prepare  # noqa: E402
from generators.scene_graphs.progress import graph_progress, read_plan  # noqa: E402
from generators.scene_graphs.record import INDEX, relations_file  # noqa: E402
from generators.scene_graphs.relations import Relation  # noqa: E402
from generators.triplets.draws import Draws  # noqa: E402
from generators.triplets.graphs import load_relations  # noqa: E402
from generators.triplets.mining import Miner  # noqa: E402
from generators.triplets.pool import make_pool, rate  # noqa: E402
from generators.triplets.ratings import load_ratings  # noqa: E402
from generators.triplets.rows import rows  # noqa: E402
from manifests.parquet import read_parquet  # noqa: E402
from shards.storage.store import Store  # noqa: E402

SHARED = ROOT.parent / "shared" / "data"
RATINGS = SHARED / "concreteness" / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
CAPTIONS = ("coco_captions_val2017.json", "flickr8k_token.txt", "cc3m_validation.tsv")
THRESHOLD, MIN_IMAGES = 4.8, 5
GOAL, GOAL_GIB = 1000, 4


class Replay:
    """A parser that remembers: the relations of captions that were parsed before."""

    def __init__(self, graphs: str) -> None:
        self.of: dict[str, list[Relation]] = {}
        store = Store(graphs)
        for shard in read_plan(store)[1]:
            captions = read_captions(store, shard)
            found = defaultdict[str, list[Relation]](list)
            with store.open(relations_file(shard.shard)) as stream:
                for row in read_parquet(stream).to_pylist():
                    spans = [row[name] for name in SPANS]
                    relation = Relation(*(row[name] for name in WORDS), tuple(spans[:2]), tuple(spans[2:]))
                    found[row["caption_id"]].append(relation)
            for caption_id, caption in zip(captions["caption_id"], captions["caption"], strict=True):
                self.of[caption] = found[caption_id]

    def relations(self, captions: Sequence[str]) -> Iterator[list[Relation]]:
        return (self.of[caption] for caption in captions)


def write_larger(graphs: str, to: Path, captions: int) -> None:
    """A folder of ``twinset parse`` with captions drawn from another, as a TSV of caption and URL has them."""
    replay = Replay(graphs)
    texts = [text for text in replay.of if text.isprintable()]
    with (to / "captions.tsv").open("w", encoding="utf-8") as stream:
        for number, chosen in enumerate(np.random.default_rng(0).integers(len(texts), size=captions).tolist()):
            stream.write(f"{texts[chosen]}\thttp://images.example.org/wp-content/uploads/2017/{number:08d}.jpg\n")
    store = Store(str(to / "graphs"))
    sources = caption_sources([to / "captions.tsv"])
    record, planned = prepare(store, sources, find_pipeline(), SHARD_SIZE, lambda: None)
    for shard in planned:
        make_shard(store, record.content, shard, replay)
    store.write(INDEX, graph_progress(store, record, planned).index().to_bytes())


def mine_all(graphs: str, rules: str, triplets: int) -> None:
    """Mine in this process and print what each step took; the parent reads the line."""
    began = time.perf_counter()
    took: dict[str, float] = {}

    def lap(step: str) -> None:
        nonlocal began
        took[step] = time.perf_counter() - began
        began = time.perf_counter()

    ratings = load_ratings(RATINGS, rules)
    lap("ratings")
    relations = load_relations(graphs)
    lap("load")
    miner = Miner(make_pool(relations, rate(relations, ratings, rules), rules, MIN_IMAGES), THRESHOLD)
    lap("pool")
    table = miner.mine(Draws(0, "triplets"), 0, triplets)
    lap("mine")
    written = sum(len(one.condition) > 0 for one in rows(relations, table))
    lap("rows")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    counts = {"relations": len(relations), "triplets": written, "left_out": table.left_out}
    print(json.dumps({"rules": rules, "seconds": took, "gib": peak, **counts}))


def against_the_published_way(graphs: str, seconds: float) -> None:
    import pandas as pd

    from tests.generators.triplets.published_procedure import PublishedProcedure, table_of

    relations, ratings = load_relations(graphs), load_ratings(RATINGS, "published")
    table = table_of(relations)
    frame = pd.DataFrame(table)
    slow = PublishedProcedure(table, ratings.published or {}, THRESHOLD, MIN_IMAGES, seed=0, rows=frame.iloc)
    began, found = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        slow.triplet()
        found += 1
    slow_rate = found / passed
    began = time.perf_counter()
    pool = make_pool(relations, rate(relations, ratings, "published"), "published", MIN_IMAGES)
    miner = Miner(pool, THRESHOLD)
    set_up = time.perf_counter() - began
    fast = {}
    for triplets in (100_000, 1_600_000):
        began = time.perf_counter()
        mined = len(miner.mine(Draws(0, "triplets"), 0, triplets))
        fast[triplets] = mined / (time.perf_counter() - began)
    print(f"{relations.captions} captions, {len(relations)} relations, published rules, one core each")
    print(f"published way {slow_rate:10.1f} triplets/s ({found} in {passed:.0f} s)")
    for triplets, speed in fast.items():
        print(
            f"twinset       {speed:10.0f} triplets/s over {triplets}: {speed / slow_rate:.0f} x; with its set-up of "
            f"{set_up:.1f} s {triplets / (triplets / speed + set_up) / slow_rate:.0f} x (goal {GOAL} x)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the published way (default 60)")
    parser.add_argument("--captions", type=int, default=3_300_000)
    parser.add_argument("--triplets", type=int, default=1_600_000)
    parser.add_argument("--scratch", type=Path, help="folder for two gigabytes of temporary files")
    parser.add_argument("--mine", nargs=2, metavar=("DIR", "RULES"), help=argparse.SUPPRESS)
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
            parse_captions([SHARED / "captions" / name for name in CAPTIONS], graphs, workers=2)
        against_the_published_way(graphs, options.seconds)
        if not options.captions:
            return
        write_larger(graphs, Path(scratch), options.captions)
        for rules in ("published", "strict"):
            command = [sys.executable, __file__, "--triplets", str(options.triplets)]
            command += ["--mine", str(Path(scratch, "graphs")), rules]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in found["seconds"].items())
            print(
                f"{options.captions} captions, {found['relations']} relations, {rules} rules: {found['triplets']} "
                f"triplets ({found['left_out']} left out) in {sum(found['seconds'].values()):.0f} s ({steps}), peak "
                f"memory {found['gib']:.2f} GiB (goal < {GOAL_GIB})"
            )


if __name__ == "__main__":
    main()
