"""What a model that answers at random gets."""

from collections import defaultdict
from collections.abc import Iterable
from math import comb
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from twinset.evaluation.report.model_answers import Asked

#: Of two images and two captions with independent scores: each of two comparisons is right in half of all cases, both
#: in a quarter; all four, if the two matching pairs are the highest of four scores: in 2! 2! / 4!.
TWO_IMAGES = {
    **dict.fromkeys(("text", "image"), 25.0),
    "group": 100 / 6,
    **dict.fromkeys(("ipos2t", "ineg2t", "tpos2i", "tneg2i"), 50.0),
}
ONE_IMAGE = {"accuracy": 50.0}
RECALL = "recall@"


def chance(path: Path, asked: Asked, figures: Iterable[str]) -> dict[str, dict[str, float]]:
    """Percent by subset ("": all) and figure, where it follows from the questions alone.

    Args:
        path: of a score file of the benchmark.
        figures: names of the figures that are asked for.
    """
    if asked == "matching":
        known = {name: value for name, value in (TWO_IMAGES | ONE_IMAGE).items() if name in set(figures)}
        return {subset: known for subset in ("", *_subsets(path))} if known else {}
    ranks = [int(name.removeprefix(RECALL)) for name in figures if name.startswith(RECALL)]
    return _recalls(path, ranks) if asked == "query" and ranks else {}


def recall(k: int, entries: int, targets: int) -> float:
    """Percent of random orders of a gallery with a target among the first k.

    1 - C(entries - targets, k) / C(entries, k): the first k are any k of the entries, and miss if all are wrong ones.
    """
    k = min(k, entries)
    return 100 * (1 - comb(entries - targets, k) / comb(entries, k))


def _recalls(path: Path, ranks: list[int]) -> dict[str, dict[str, float]]:
    counts: defaultdict[tuple[str, int, int], int] = defaultdict(int)
    columns = ["subset", "entries", "targets"]
    for batch in pq.ParquetFile(path).iter_batches(columns=columns):
        kinds = pa.Table.from_batches([batch]).group_by(columns).aggregate([([], "count_all")])
        for *kind, count in zip(*(kinds.column(name).to_pylist() for name in (*columns, "count_all")), strict=True):
            counts[tuple(kind)] += count
    found: dict[str, dict[str, float]] = {}
    for subset in ("", *sorted({subset for subset, _, _ in counts})):
        here = {kind: count for kind, count in counts.items() if subset in ("", kind[0])}
        total = sum(here.values())
        found[subset] = {
            f"{RECALL}{k}": sum(count * recall(k, *kind[1:]) for kind, count in here.items()) / total for k in ranks
        }
    return found


def _subsets(path: Path) -> list[str]:
    subsets: set[str] = set()
    for batch in pq.ParquetFile(path).iter_batches(columns=["subset"]):
        subsets.update(batch.column(0).unique().to_pylist())
    return sorted(subsets)
