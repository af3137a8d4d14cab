"""The worst mistakes of a model: the questions that it answers wrongly with the greatest confidence."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from twinset.evaluation.report.model_answers import SCHEMAS, Asked, ModelAnswers

COUNT = 8
#: Candidates from which the shown ones are chosen: one source image or video should not fill the page.
POOL = 400

SCORES = ("s00", "s01", "s10", "s11")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A question that was answered wrongly.

    by: how far the right answer was behind, in scores, entries of the gallery, or seconds. scores: the columns of its
    row that the model answered with.
    """

    key: str
    subset: str
    category: str
    group: str
    by: float
    scores: dict[str, float | list[float] | None]

    @property
    def best_wrong(self) -> int | None:
        """Of a query, the place in the gallery of the wrong entry that scores highest, where it is known."""
        place = self.scores.get("best_wrong")
        return int(place) if isinstance(place, int | float) else None


def worst_mistakes(scored: ModelAnswers, count: int = COUNT) -> list[Mistake]:
    """At most ``count`` mistakes, the worst first; one a group as far as there are enough groups.

    None where outcomes alone are known, which do not say how far off an answer is.
    """
    if not scored.scores:
        return []
    pool: list[Mistake] = []
    for batch in pq.ParquetFile(scored.path).iter_batches(columns=SCHEMAS[scored.asked].names):
        wrong = _BY[scored.asked](batch)
        places = np.flatnonzero(wrong > 0)
        if len(places) > POOL:
            places = places[np.argpartition(-wrong[places], POOL)[:POOL]]
        rows = batch.take(pa.array(places)).to_pylist()
        pool += [_mistake(row, float(by)) for row, by in zip(rows, wrong[places], strict=True)]
        pool = sorted(pool, key=lambda one: (-one.by, one.key))[:POOL]
    seen: Counter[str] = Counter()
    order = []
    for one in pool:
        order.append((seen[one.group], one))
        seen[one.group] += 1
    # Stable: first the worst of each group, then the second of each.
    chosen = [one for _, one in sorted(order, key=lambda item: item[0])[:count]]
    return sorted(chosen, key=lambda one: (-one.by, one.key))


def _mistake(row: dict[str, object], by: float) -> Mistake:
    named = {name: str(row.pop(name)) for name in ("key", "subset", "category", "group")}
    return Mistake(**named, by=by, scores=row)  # type: ignore[arg-type]


def _matching(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """The largest lead of a wrong answer over the right one, of the two or four comparisons of a row."""
    s00, s01, s10, s11 = (_floats(batch, name) for name in SCORES)
    leads = np.stack([s01 - s00, s10 - s11, s10 - s00, s01 - s11])  # NaN where there is one image
    return np.asarray(np.fmax.reduce(leads), np.float64)


def _query(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Share of the gallery's other entries that score higher than the best target, ties as half."""
    higher, tied, entries = (_floats(batch, name) for name in ("higher", "tied", "entries"))
    return np.asarray((higher + tied / 2) / np.maximum(entries - 1, 1), np.float64)


def _grounding(batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Mean error in seconds of the gaps that score best."""
    return np.array([np.mean(errors) for errors in batch.column("errors").to_pylist()], np.float64)


def _floats(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), np.float64)


_BY: dict[Asked, Callable[[pa.RecordBatch], NDArray[np.float64]]] = {
    "matching": _matching,
    "query": _query,
    "grounding": _grounding,
}
