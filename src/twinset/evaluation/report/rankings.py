"""The images of a query in people's order, and in that of each model (EqBen, Figures 1 and 7)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from twinset.cards.sheet import Block
from twinset.evaluation.examples import Benchmark
from twinset.evaluation.metrics.ranking import FIRST, ORDERS, correlations
from twinset.evaluation.report.gallery import QUERY, pictures
from twinset.evaluation.report.results import BenchmarkResults

COUNT = 8  # queries
COLUMNS = 13  # images side by side: 25 are two lines


@dataclass(frozen=True, slots=True)
class Order:
    """An order of images. words: whose it is, and how like people's."""

    words: str
    block: Block


def ranking_blocks(
    out: Path, results: BenchmarkResults, benchmark: Benchmark | None
) -> Iterator[tuple[Block, list[Order]]]:
    """The first `COUNT` queries as blocks, each with people's order and those of all models that answered it.

    Above an image is its place, in a model's order with people's. Pictures are read from the benchmark, or were kept
    before in ``pictures``; a query whose pictures are not there is left out.
    """
    models = [one.scored for one in results.models if {*ORDERS} <= {*pq.read_schema(one.scored.path).names}]
    if not models or not results.same_data:
        return
    answers = {one.about.model: _rows(one.path) for one in models}
    queries = {key: row for rows in reversed(answers.values()) for key, row in rows.items()}
    chosen = dict(sorted(queries.items(), key=lambda item: (item[1]["subset"], item[1]["group"], item[0]))[:COUNT])
    parts = pictures(out, results, benchmark, {key: range(len(row["people"])) for key, row in chosen.items()})
    for key, row in chosen.items():
        people = np.array(row["people"])
        shown = parts.get(key, {})
        if not {QUERY, *map(str, range(len(people)))} <= shown.keys():
            continue

        def images(before: Sequence[int], beside: bool, people: Any = people, shown: Any = shown) -> Block:
            order = np.lexsort((people, before))
            cells = []
            for place in order.tolist():
                label = f"{before[place] + 1}" + (f" · people {people[place] + 1}" if beside else "")
                cells.append(replace(shown[str(place)], right=people[place] < FIRST).cell(label))
            return Block("", cells, COLUMNS, "")

        asks = shown[QUERY]
        query = Block(key, [asks.cell(QUERY)], 1 if asks.jpeg is None else COLUMNS, row["subset"])
        orders = [Order("people", images(row["people"], False))]
        for model, rows in answers.items():
            if key in rows:
                tau, rho, overlap = correlations(np.array(rows[key]["places"], float), people.astype(float))
                words = f"{model}: Kendall's tau {tau:.2f}, Spearman's rho {rho:.2f}"
                words += "" if np.isnan(overlap) else f", {round(overlap * FIRST / 100)} of people's first {FIRST}"
                orders.append(Order(words, images(rows[key]["places"], True)))
        yield query, orders


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    columns = ["key", "subset", "group", *ORDERS]
    return {row["key"]: row for row in pq.read_table(path, columns=columns, partitioning=None).to_pylist()}
