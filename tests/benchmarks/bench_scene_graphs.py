"""Relations of captions on two cores against `sng_parser.parse` on one caption at a time in one process.

    python -m tests.benchmarks.bench_scene_graphs [--captions FILE] [--rounds N]

Each round parses the same captions both ways: one by one, and by the source's generator in two processes, a micro-batch
at a time, with its rows. Pipelines and libraries are loaded in a first round, which does not count.
"""

import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.measured import OURS, compare
from tests.options import options
from twinset.contracts.kinds.samples import TableRows
from twinset.generators.captions.tables import Caption, caption_source
from twinset.generators.scene_graphs.relations import BATCH
from twinset.generators.scene_graphs.source import CaptionCandidate, SceneGraphs
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.contracts import Context
from twinset_demo import MINIATURE

Triple = tuple[str, str, str]
REAL = Path(__file__).parents[3] / "shared" / "data" / "captions" / "cc3m_validation.tsv"
CAPTIONS = REAL if REAL.is_file() else MINIATURE / "stills" / "captions.json"
WORKERS, COUNT = 2, 2048  # captions of a round
ALONE = "`sng_parser.parse` one by one, one process"


@cache
def sng() -> Any:
    import sng_parser

    return sng_parser.Parser("spacy", model=find_pipeline().source)


@cache
def generator(captions: str) -> SceneGraphs:
    return SceneGraphs.model_validate({"kind": "scene-graphs", "captions": captions}).open(Context("scene-graphs"))


def made(captions: str, planned: list[CaptionCandidate]) -> list[list[Triple]]:
    relations = []
    for start in range(0, len(planned), BATCH):
        for result in generator(captions).make(planned[start : start + BATCH]):
            rows = result.rows if isinstance(result, TableRows) else ()
            relations.append([(str(row["subject"]), str(row["predicate"]), str(row["object"])) for row in rows])
    return relations


def one_by_one(captions: list[str]) -> list[list[Triple]]:
    relations = []
    for caption in captions:
        graph = sng().parse(caption)
        heads = [entity["head"] for entity in graph["entities"]]
        relations.append([(heads[r["subject"]], r["relation"], heads[r["object"]]) for r in graph["relations"]])
    return relations


def main() -> None:
    given = options(__doc__, captions=str(CAPTIONS), rounds=4)
    spawn = get_context("spawn")
    with (
        TemporaryDirectory() as scratch,
        ProcessPoolExecutor(1, spawn) as alone,
        ProcessPoolExecutor(WORKERS, spawn) as pool,
    ):
        records = caption_source(Path(given.captions)).read()
        table = Path(scratch, "captions.tsv")
        texts = list(islice((record.caption for record in records if isinstance(record, Caption)), COUNT))
        table.write_text("".join(f"{text}\thttp://localhost/{n}\n" for n, text in enumerate(texts)), "utf-8")
        planned = list(generator(str(table)).plan())
        captions = [candidate.caption for candidate in planned]
        half = -(-len(planned) // WORKERS)

        def ours() -> list[list[Triple]]:
            parts = [planned[start : start + half] for start in range(0, len(planned), half)]
            calls = [pool.submit(made, str(table), part) for part in parts]
            return list(chain.from_iterable(call.result() for call in calls))

        results = compare(
            f"relations of {len(captions):,} captions, {WORKERS} processes",
            ours,
            {ALONE: lambda: alone.submit(one_by_one, captions).result()},
            rounds=given.rounds,
            clock=time.perf_counter,
            more=lambda seconds: f"{len(captions) / seconds:,.0f} captions/s",
        )
    assert results[OURS] == results[ALONE], "the relations differ"


if __name__ == "__main__":
    main()
