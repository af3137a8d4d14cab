"""Triplets a second against the published procedure on the same real captions.

    python -m tests.benchmarks.bench_triplets [--seconds N] [--triplets N]

Both mine on one core with the real ratings and a threshold of 4.8, twinset under the published rules and under the
strict ones, with their set-up. The other way is that of GeneCIS's released code: rows of a pandas table,
``numpy.random.choice`` among lists, one triplet after the other (`tests.generators.triplets.published_procedure`); it
is stopped after some seconds.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from tests.benchmarks.measured import row
from tests.generators.finished_stage import finish
from tests.generators.triplets.published_procedure import PublishedProcedure, table_of
from tests.options import options
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.ratings import load_ratings, with_plurals
from twinset.generators.triplets.relations import Relations, load_relations
from twinset.generators.triplets.strict import StrictRules

SHARED = Path(__file__).parents[3] / "shared" / "data"
RATINGS = SHARED / "concreteness" / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
CAPTIONS = ("coco_captions_val2017.json", "flickr8k_token.txt", "cc3m_validation.tsv")
THRESHOLD, MIN_IMAGES, MIN_SUPPORT = 4.8, 5, 2


def miner(relations: Relations, ratings: dict[str, float], rules: str) -> Miner:
    if rules == "published":
        return PublishedRules(relations, with_plurals(ratings), THRESHOLD, MIN_IMAGES)
    return StrictRules(relations, ratings, THRESHOLD, MIN_IMAGES, MIN_SUPPORT, distractors=True)


def published_rate(relations: Relations, ratings: dict[str, float], seconds: float) -> float:
    table = table_of(relations)
    procedure = PublishedProcedure(
        table, with_plurals(ratings), THRESHOLD, MIN_IMAGES, seed=0, rows=pd.DataFrame(table).iloc
    )
    began, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        procedure.triplet()
        count += 1
    return count / passed


def main() -> None:
    given = options(__doc__, seconds=60.0, triplets=1_600_000)
    if not RATINGS.is_file():
        sys.exit("this needs the real ratings and captions of ../shared/data, which are not here")
    with TemporaryDirectory() as scratch:
        captions = [str(SHARED / "captions" / name) for name in CAPTIONS]
        source = SceneGraphs.model_validate({"kind": "scene-graphs", "captions": captions})
        relations = load_relations(finish(source, Path(scratch, "graphs")), Path(scratch))
        ratings = load_ratings(RATINGS)
        rate = published_rate(relations, ratings, given.seconds)
        for rules in ("published", "strict"):
            began = time.perf_counter()
            mined = miner(relations, ratings, rules).mine(Draws(0, "triplets"), 0, given.triplets)
            seconds = time.perf_counter() - began
            row(
                f"{given.triplets:,} of {relations.captions:,} captions, {rules} rules, with set-up",
                "the published procedure",
                [mined["passes"].count() / seconds / rate],
                f"{seconds:.1f} s",
            )


if __name__ == "__main__":
    main()
