"""The bootstrap clustered by group (a source image or video): clusters are drawn with replacement, never rows."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.row_values import Floats, Places

_CELLS = 4_000_000  # weights at a time


class Share(NamedTuple):
    """A figure in percent of each run, shape (runs,), and over resamples, shape (draws,), NaN without a row; all are
    NaN where fewer than two clusters are asked the figure. rows, clusters: how many are asked it.
    """

    runs: Floats
    again: Floats
    rows: int
    clusters: int


def percents(
    runs: Sequence[Mapping[str, Floats]], groups: Places, seed: int, resamples: int, label: str
) -> dict[str, Share]:
    """Figures in percent, by name.

    A resample draws clusters and runs of a model, such as its seeds: all runs answer the same examples, so the clusters
    hold for each of them (Owen, 2007, "The pigeonhole bootstrap"). VALSE's ``min`` is the lesser of two figures.

    Args:
        runs: row values by figure, of shape (n,) each, the same figures of each run.
        groups: numbers of the rows' clusters from 0, shape (n,).
    """
    columns = [column for run in runs for column in run.values()]
    if not columns:
        return {}
    clusters = int(groups.max()) + 1
    if clusters < len(groups):
        asked = [np.bincount(groups, ~np.isnan(column)).astype(np.float64) for column in columns]
        columns = [np.bincount(groups, np.nan_to_num(column)).astype(np.float64) for column in columns] + asked
    frame = pl.DataFrame({str(place): column for place, column in enumerate(columns)})
    # Clusters with the same sums are one way to be one, in an order that does not depend on that of the rows.
    ways = frame.group_by(frame.columns).len("clusters").sort(frame.columns)
    counts, sums = ways["clusters"].to_numpy().astype(np.int64), ways.drop("clusters").to_numpy()
    if clusters == len(groups):
        sums = np.hstack([np.nan_to_num(sums), ~np.isnan(sums)])
    again = resampled(sums, counts, resamples, seed, label)
    chances = np.full(len(runs), 1 / len(runs))
    weights = np.random.default_rng(seed).multinomial(len(runs), chances, len(again))
    drawn = np.einsum("dr,dhrf->dhf", weights, again.reshape(len(again), 2, len(runs), len(runs[0])))
    each = (counts @ sums).reshape(2, len(runs), -1)
    asked_of = counts @ (sums[:, sums.shape[1] // 2 :] > 0)
    asking, rows = asked_of.reshape(len(runs), -1).min(axis=0), each[1].min(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        whole, shares = 100 * each[0] / each[1], 100 * drawn[:, 0] / drawn[:, 1]
    shares[:, asking < 2] = np.nan
    figures = dict(zip(runs[0], map(Share, whole.T, shares.T, rows.astype(int).tolist(), asking.tolist()), strict=True))
    if {"p_c", "p_f"} <= figures.keys():
        caption, foil = figures["p_c"], figures["p_f"]
        runs_lesser, again_lesser = np.minimum(caption.runs, foil.runs), np.minimum(caption.again, foil.again)
        figures["min"] = caption._replace(runs=runs_lesser, again=again_lesser)
    return figures


def resampled(
    sums: NDArray[np.number[Any]], counts: NDArray[np.int64], resamples: int, seed: int, label: str = ""
) -> Floats:
    """Sums of events over resamples of clusters, shape (resamples, events).

    A resample draws as many clusters as there are, with replacement: their weights are multinomial. So are those of
    ways to be a cluster, with their shares of all clusters as probabilities.

    Args:
        sums: of events, for each way to be a cluster, shape (ways, events).
        counts: clusters of each way, shape (ways,).
        seed, label: of the random numbers: those of a label do not depend on which others there are.
    """
    if resamples < 0:
        raise WrongUse(f"resamples {resamples}: choose at least 1, or 0 for no intervals")
    digest = hashlib.blake2b(label.encode(), digest_size=8).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest, "big")])
    total, block, again = int(counts.sum()), max(1, _CELLS // len(counts)), [np.empty((0, sums.shape[1]))]
    for first in range(0, resamples, block):
        weights = rng.multinomial(total, counts / total, min(block, resamples - first))
        again.append(weights.astype(np.float64) @ sums.astype(np.float64))
    return np.vstack(again)


def interval(values: Floats) -> tuple[float | None, float | None]:
    """The 2.5 % and 97.5 % percentiles; resamples without any row of the kind (NaN) are left out; None for none."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None, None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
