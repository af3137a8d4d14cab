"""Relations of captions on two cores against `sng_parser.parse` on one caption at a time, and over the bare pipe.

    python tests/benchmarks/bench_scene_graphs.py [--captions FILE] [--rounds N] [--pipeline NAME|PATH]

Each round parses the same captions three ways in turn, so that other work on the machine slows all of them alike: one
by one in one process; by spaCy's ``nlp.pipe`` alone in two processes, half of them each (the bare pipe: no rules, no
rows); and by the source's generator in two processes, a micro-batch at a time, with rules and rows. Pipelines and
libraries are loaded before the clocks start. Printed: ratios of wall time, those of CPU time (a core; what holds on a
busy machine, where two processes may get no more than one does), the overhead over the bare pipe in CPU time and what
the rules alone take of it, whether the relations are equal, and the memory of the two processes after the first round
and the last.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measured import peak_mib, row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from twinset.contracts.kinds.samples import TableRows  # noqa: E402
from twinset.generators.captions.tables import Caption, caption_source  # noqa: E402
from twinset.generators.scene_graphs.relations import BATCH, ZONE, _relations, parser_of, places_in  # noqa: E402
from twinset.generators.scene_graphs.source import CaptionCandidate, SceneGraphs  # noqa: E402
from twinset.models.spacy_pipelines import EMBEDDED, Pipeline, _import_spacy_alone, find_pipeline  # noqa: E402
from twinset.shards.contracts import Context  # noqa: E402

Triple = tuple[str, str, str]
WORKERS = 2
START_SECONDS = 5.0
SHARD = 1024  # captions; a round is a shard for each process
Answer = tuple[Any, float, int]  # what was found, CPU seconds, peak memory in MiB
OWN = "{} {} is {} a {} in front of the {} on the {}"


def measured(work: Callable[..., Any], *arguments: Any) -> Answer:
    start = time.process_time()
    found = work(*arguments)
    return found, time.process_time() - start, round(peak_mib())


@cache
def sng(pipeline: Pipeline) -> Any:
    import sng_parser

    return sng_parser.Parser("spacy", model=pipeline.source)


@cache
def generator(captions: str, pipeline: str) -> SceneGraphs:
    settings = {"kind": "scene-graphs", "captions": captions, "pipeline": pipeline}
    return SceneGraphs.model_validate(settings).open(Context("scene-graphs"))


def load(captions: str, pipeline: Pipeline, planned: list[CaptionCandidate]) -> None:
    """Load what a process needs, and have it do its work once: libraries load parts of themselves at first use."""
    if not pipeline.torch:
        _import_spacy_alone()
    sng(pipeline)
    made(captions, pipeline, planned)
    time.sleep(START_SECONDS)  # until the other process has taken the other call


def made(captions: str, pipeline: Pipeline, planned: list[CaptionCandidate]) -> list[list[Triple]]:
    found: list[list[Triple]] = []
    for start in range(0, len(planned), BATCH):
        for one in generator(captions, pipeline.name).make(planned[start : start + BATCH]):
            rows = one.rows if isinstance(one, TableRows) else ()
            found.append([(str(row["subject"]), str(row["predicate"]), str(row["object"])) for row in rows])
    return found


def one_by_one(pipeline: Pipeline, captions: list[str]) -> list[list[tuple[str, str, str]]]:
    graphs = [sng(pipeline).parse(caption) for caption in captions]
    return [
        [
            (graph["entities"][r["subject"]]["head"], r["relation"], graph["entities"][r["object"]]["head"])
            for r in graph["relations"]
        ]
        for graph in graphs
    ]


def bare(pipeline: Pipeline, captions: list[str]) -> int:
    nlp = sng(pipeline).unwrapped.nlp
    words = 0
    for start in range(0, len(captions), ZONE):
        with nlp.memory_zone():
            words += sum(len(doc) for doc in nlp.pipe(captions[start : start + ZONE], batch_size=BATCH))
    return words


def rules_alone(pipeline: Pipeline, captions: list[str]) -> float:
    """CPU seconds of the rules on ready documents: what no pipe can save."""
    parser, spent = parser_of(pipeline), 0.0
    for start in range(0, len(captions), BATCH):
        batch = captions[start : start + BATCH]
        with parser.nlp.memory_zone():
            docs = list(parser.docs(batch))
            began = time.process_time()
            for caption, doc in zip(batch, docs, strict=True):
                _relations(doc, parser._parser.parse(doc), places_in(caption))
            spent += time.process_time() - began
    return spent


def own_captions(count: int) -> list[str]:
    """Captions for where no real ones are at hand."""
    lists = (
        ("a", "the", "one", "another"),
        ("man", "woman", "dog", "young girl", "group of people"),
        ("holding", "watching", "riding", "wearing", "carrying"),
        ("red ball", "bicycle", "hat", "white horse", "cup of tea"),
        ("old house", "lake", "crowd", "wooden table"),
        ("street", "grass", "beach", "floor of a large room"),
    )
    made = []
    for number in range(count):
        rest, chosen = number * 7919, []
        for words in lists:
            rest, at = divmod(rest, len(words))
            chosen.append(words[at])
        made.append(OWN.format(*chosen))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    real = ROOT.parent / "shared" / "data" / "captions" / "cc3m_validation.tsv"
    parser.add_argument("--captions", type=Path, default=real if real.is_file() else None)
    parser.add_argument("--rounds", type=int, default=4, help=f"of {WORKERS * SHARD} captions (default 4)")
    parser.add_argument("--pipeline", default=EMBEDDED)
    options = parser.parse_args()
    pipeline, spawn = find_pipeline(options.pipeline), get_context("spawn")
    seconds, cpu = defaultdict[str, float](float), defaultdict[str, float](float)
    rounds = defaultdict[str, list[float]](list)
    memory: list[int] = []
    count = relations = wrong = 0
    rules = 0.0
    with (
        TemporaryDirectory() as scratch,
        ProcessPoolExecutor(1, spawn) as alone,
        ProcessPoolExecutor(WORKERS, spawn) as pool,
    ):
        wanted = options.rounds * WORKERS * SHARD
        if options.captions is None:
            texts = own_captions(wanted)
        else:
            read = (one.caption for one in caption_source(options.captions).read() if isinstance(one, Caption))
            texts = list(islice(read, wanted))
        table = Path(scratch, "captions.tsv")
        table.write_text("".join(f"{text}\thttp://localhost/{n}\n" for n, text in enumerate(texts)), "utf-8")
        planned = list(generator(str(table), pipeline.name).plan())
        shards = [planned[start : start + SHARD] for start in range(0, len(planned), SHARD)]
        shards = shards[: len(shards) // WORKERS * WORKERS]
        if not shards:
            sys.exit(f"{options.captions}: fewer than {WORKERS * SHARD} captions; name another file with --captions")
        for processes, number in ((alone, 1), (pool, WORKERS)):
            calls = [processes.submit(load, str(table), pipeline, shards[0]) for _ in range(number)]
            for call in calls:
                call.result()

        def each(work: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Answer]:
            return [one.result() for one in [pool.submit(measured, work, *given) for given in arguments]]

        for first in range(0, len(shards), WORKERS):
            now = shards[first : first + WORKERS]
            captions = [one.caption for shard in now for one in shard]
            runs: dict[str, Callable[[], list[Answer]]] = {
                "one by one": lambda c=captions: [alone.submit(measured, one_by_one, pipeline, c).result()],
                "bare pipe": lambda c=captions: each(bare, [(pipeline, c[n::WORKERS]) for n in range(WORKERS)]),
                "twinset": lambda n=now: each(made, [(str(table), pipeline, shard) for shard in n]),
            }
            answers = {}
            for way, run in runs.items():
                began = time.perf_counter()
                answers[way] = run()
                rounds[way].append(time.perf_counter() - began)
                seconds[way] += rounds[way][-1]
                cpu[way] += sum(spent for _, spent, _ in answers[way])
            expected = answers["one by one"][0][0]
            found = [relations for answer in answers["twinset"] for relations in answer[0]]
            rules += alone.submit(rules_alone, pipeline, captions).result()
            wrong += sum(a != b for a, b in zip(expected, found, strict=True))
            relations += sum(map(len, found))
            count += len(captions)
            memory.append(max(peak for _, _, peak in answers["twinset"]))
            print(f"{count} captions", file=sys.stderr, flush=True)
    print(
        f"{count} captions of {options.captions or 'its own'}, {relations} relations; {wrong} captions differ in them"
    )
    for way in seconds:
        print(
            f"{way:<10} {seconds[way]:6.1f} s {count / seconds[way]:6.0f} captions/s "
            f"{seconds['one by one'] / seconds[way]:5.2f} x   CPU {cpu[way]:6.1f} s {count / cpu[way]:6.0f} captions/s "
            f"{cpu['one by one'] / cpu[way]:5.2f} x a core"
        )
    row(
        f"relations of {count:,} captions, {WORKERS} processes",
        "`sng_parser.parse`, one process",
        [one / two for one, two in zip(rounds["one by one"], rounds["twinset"], strict=True)],
        f"{cpu['one by one'] / cpu['twinset']:.2f} × a core; {wrong} captions differ; over the bare pipe "
        f"{cpu['twinset'] / cpu['bare pipe'] - 1:+.1%} CPU time",
    )
    print(f"over the bare pipe, CPU time: {cpu['twinset'] / cpu['bare pipe'] - 1:+.1%}")
    print(f"its rules on ready documents, of the bare pipe's CPU time: {rules / cpu['bare pipe']:.1%}")
    print(f"on {WORKERS} idle cores by CPU time: {WORKERS * cpu['one by one'] / cpu['twinset']:.2f} x one by one")
    print(f"peak memory of a process: {memory[0]} MiB after the first round, {memory[-1]} after {len(memory)}")


if __name__ == "__main__":
    main()
