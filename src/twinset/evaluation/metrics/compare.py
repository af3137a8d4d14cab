"""Compares two tables of scores row by row: paired bootstrap of the difference, McNemar's test, Holm's correction."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import interval, percents
from twinset.evaluation.metrics.matching import FINER, ORDERS
from twinset.evaluation.metrics.measure import NO_GROUP, opened, parted
from twinset.evaluation.metrics.row_values import ALL, MEAN, Floats, chosen, clusters, labelled, refuse_all
from twinset.evaluation.score_files.opening import open_scores

#: Figures that no comparison has: parts of others, or means of them.
_PARTS = {*FINER, *ORDERS, "group_match", "acc", "p_c", "p_f", "grounding", "text_detection", "image_detection"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two tables have in common and how they differ; only_in_a, only_in_b: rows that the other lacks.

    table: a row for each figure (``figure``) of all rows or of a value of the asked columns (``rows``), over the ``n``
    rows of ``groups`` groups that are asked it. ``a``, ``b`` are percent, ``difference`` is a - b; ``low``, ``high``
    its 95 % interval, by the paired bootstrap clustered by group. ``only_a``, ``only_b``: rows in which A, or B, is
    better; ``p``: McNemar's exact test of these two, which takes rows as independent; ``p_holm``: corrected for all
    rows of the table (Holm 1979).
    """

    n: int
    only_in_a: int
    only_in_b: int
    table: pl.DataFrame
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """``{"n", "only_in_a", "only_in_b", "table": [{"rows", "figure", …}], "notes"}``."""
        counts = {"n": self.n, "only_in_a": self.only_in_a, "only_in_b": self.only_in_b}
        return {**counts, "table": self.table.to_dicts(), "notes": [*self.notes]}


def mcnemar(only_a: int, only_b: int) -> float:
    """p of McNemar's exact test. only_a, only_b: rows that one of two is right about."""
    from scipy.stats import binomtest  # refusals of the command line do without

    return float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0


def compare(
    a: pa.Table | str | Path,
    b: pa.Table | str | Path,
    by: Sequence[str] = (),
    seed: int = 0,
    resamples: int = 2000,
    *,
    key: Sequence[str] | None = ("key",),
    group: str | None = None,
) -> Comparison:
    """Compare two tables of scores of one kind: text, image and group, or accuracy, recall, the thresholds of
    grounding, and metrics; arguments as of `evaluation.metrics.measure.measure`.

    Args:
        key: columns that together identify a row in both; None: their rows are in the same order.

    Raises:
        WrongUse: a key twice in a file, no key in common, or tables of different kinds.
    """
    files = [open_scores(source) for source in (a, b)]
    apart, by = parted(files, by)
    readings, sides, column, only = opened(files, by, group, key or (), None)
    where = f"{files[0].where} and {files[1].where}"
    if readings[0].kind != readings[1].kind:
        raise WrongUse(f"{where} have scores of different kinds; compare like with like")
    if not len(sides[0]) or (key is None and any(only)):
        problem = "no key in common" if key else "not as many rows, so are not in one order"
        raise WrongUse(f"{where} have {problem}; name the columns of their keys with --key")
    lines, notes = list[dict[str, Any]](), list[str]()
    parts = dict(labelled(sides[0], by))
    refuse_all(parts, f"{where}: a value of --by {','.join(by)}")
    for label, rows in (parts if apart else {ALL: np.arange(len(sides[0]))} | parts).items():
        first, second = (reading.rows(chosen(side, rows)) for reading, side in zip(readings, sides, strict=True))
        differences = dict[str, Floats]()
        for name in dict.fromkeys([*first.asked, *second.asked]):
            of_a, of_b = (values.strict.get(name, np.full(len(rows), np.nan)) for values in (first, second))
            if name in _PARTS or name.startswith(MEAN):
                continue
            if (np.isnan(of_a) != np.isnan(of_b)).any():
                notes.append(f"{name} is not compared: it is not asked of the same rows in both")
            else:
                differences[name] = of_a - of_b
        groups = clusters(chosen(sides[0], rows), column)
        for name, share in percents([differences], groups, seed, resamples, label).items():
            of_a, of_b = first.strict[name], second.strict[name]
            only_a, only_b, (low, high) = int((of_a > of_b).sum()), int((of_b > of_a).sum()), interval(share.again)
            lines.append({
                "rows": label, "figure": name, "n": share.rows, "groups": share.clusters,
                "a": 100 * np.nanmean(of_a), "b": 100 * np.nanmean(of_b), "difference": share.runs[0],
                "low": low, "high": high, "only_a": only_a, "only_b": only_b,
                "p": mcnemar(only_a, only_b),
            })  # fmt: skip
    for count, file, other_file in zip(only, files, files[::-1], strict=True):
        notes += [f"{count:,} rows of {file.where} are not in {other_file.where} and are left out"] if count else []
    notes += [note for reading in readings for note in reading.notes] + ([NO_GROUP] if column is None else [])
    notes += [] if lines else ["no figure is asked of the same rows in both files"]
    corrected = [{**line, "p_holm": p} for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True)]
    table = pl.DataFrame(corrected, infer_schema_length=None)
    return Comparison(len(sides[0]), only[0], only[1], table, tuple(dict.fromkeys(notes)))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction: the i-th smallest of m is multiplied by m - i + 1, and none is below a smaller one's."""
    order, values = np.argsort(p, kind="stable"), np.array(p, np.float64)
    values[order] = np.maximum.accumulate(np.minimum(1, np.arange(len(p), 0, -1) * values[order]))
    return [float(value) for value in values]
