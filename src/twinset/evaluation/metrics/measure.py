"""Measures a table of scores: figures, ties, and intervals clustered by group."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.bootstrap import interval, percents
from twinset.evaluation.metrics.figures import Figure, Measured, Results
from twinset.evaluation.metrics.row_values import ALL, MEAN, Floats, Places, chosen, clusters, common, labelled
from twinset.evaluation.metrics.score_kinds import Reading, reading_of
from twinset.evaluation.score_files.opening import Batch, ScoreFile, open_scores

KEY = "key"
APART = "apart"  # in a file's metadata: its subsets ask in different ways
NO_GROUP = "every row is its own group; where rows share an image or video, name its column with --group"
KEYS = "name columns that identify a row with --key"


def measure(
    source: pa.Table | str | Path | Sequence[Path],
    by: Sequence[str] = (),
    seed: int = 0,
    resamples: int = 2000,
    *,
    group: str | None = None,
    threshold: float | None = None,
    label: str = ALL,
) -> Results:
    """Figures of a table of scores.

    Args:
        source: a table, or the path of one: `evaluation.metrics.score_kinds.COLUMNS` lists the columns; paths of
            several runs of one model on the same examples, for means over runs.
        by: columns; the figures are also given for the rows of each value, or of each pair of values for two columns.
            Where subsets ask in different ways (`parted`), ``subset`` is the first of them.
        resamples: of the bootstrap; 0 for no intervals.
        group: column whose rows are resampled together; None: ``group`` where there is one, else every row by itself.
        threshold: score above which image and caption are said to match (VALSE).
        label: of the table: the resamples of two differ.

    Raises:
        WrongUse: the file cannot be read, lacks a column, a row has no score, or two rows have one key; names the row
            and the remedy. Runs have other examples.
    """
    sources = [source] if isinstance(source, pa.Table | str | Path) else source
    files = [open_scores(run) for run in sources]
    keys = [KEY] if len(files) > 1 or KEY in files[0].names else []
    apart, by = parted(files, by)
    readings, tables, column, lacking = opened(files, by, group, keys, threshold)
    if any(lacking):
        where = " and ".join(file.where for file in files)
        raise WrongUse(f"{where} do not have the same examples; score all on the same data")
    everything = _measured(readings, tables, column, seed, resamples, label)
    values = {
        value: _measured(readings, [chosen(table, rows) for table in tables], column, seed, resamples, f"by {value}")
        for value, rows in labelled(tables[0], by)
    }
    everything = replace(everything, figures={}) if apart else everything
    return Results(everything, values, (*readings[0].notes, *_notes(everything, readings[0].kind, column)))


def parted(files: Sequence[ScoreFile], by: Sequence[str]) -> tuple[bool, Sequence[str]]:
    """Whether subsets ask in different ways, as any of the files says; and the columns, which then tell them apart."""
    apart = any(file.about.get(APART) for file in files)
    return apart, ["subset", *by] if apart and "subset" not in by else by


def opened(
    files: Sequence[ScoreFile], by: Sequence[str], group: str | None, key: Sequence[str], threshold: float | None
) -> tuple[list[Reading], list[Batch], str | None, list[int]]:
    """How files are read; the rows of each, of several those that all have, in one order; the column of groups; how
    many rows of each are left out. by, group: columns of the first.
    """
    if group is not None:
        files[0].require(group, "--group")
    readings, column = [reading_of(file, threshold) for file in files], group
    if group is None and "group" in files[0].names:
        column = "group"
    tables = list[Batch]()
    for file, reading in zip(files, readings, strict=True):
        more = [] if tables else [*by, *filter(None, [column])]
        for name in (*key, *more):
            file.require(name, "--key" if name in key else "--by")
        if key:
            remedy = f"rename the column {KEY} where it is not a row's own" if len(files) == 1 else KEYS
            file.refuse_repeats(key, f"keep one row of each, or {remedy}")
        tables.append(file.read([*reading.columns, *key, *more]))
    same = common(tables, key) if len(files) > 1 else tables
    return readings, same, column, [len(table) - len(same[0]) for table in tables]


def _measured(
    readings: Sequence[Reading], tables: Sequence[Batch], group: str | None, seed: int, resamples: int, label: str
) -> Measured:
    """Figures of some rows of one run or of several; label: of the random numbers."""
    runs = [reading.rows(table) for reading, table in zip(readings, tables, strict=True)]
    asked = [name for name in runs[0].asked if all(name in run.strict for run in runs)]
    shares = [{name: run.strict[name] for name in asked if not name.startswith(MEAN)} for run in runs]
    means = {name: np.array([np.nanmean(run.strict[name]) for run in runs]) for name in asked if name.startswith(MEAN)}
    rows = {name: int((~np.isnan(runs[0].strict[name])).sum()) for name in means}
    groups, figures = clusters(tables[0], group), dict[str, Figure]()
    spreads = {name: _of_mean(runs[0].strict[name], groups) for name in means if resamples and len(runs) == 1}
    known = [name for name in asked if all(name in run.expected for run in runs)]
    expected = {name: 100 * float(np.mean([np.nanmean(run.expected[name]) for run in runs])) for name in known}
    ties = [run.ties for run in runs if run.ties is not None]
    del runs  # what the bootstrap does not need: of millions of rows gigabytes
    for name, share in percents(shares, groups, seed, resamples, label).items():
        figures[name] = _figure(share.runs, share.rows, expected.get(name), *interval(share.again))
    figures |= {name: _figure(each, rows[name], None, *spreads.get(name, (None, None))) for name, each in means.items()}
    return Measured(len(tables[0]), int(groups.max()) + 1, float(np.mean(ties)) if ties else None, figures)


def _of_mean(numbers: Floats, groups: Places) -> tuple[float | None, float | None]:
    """The normal 95 % interval of a mean, from 0 on where no number is below: linearised, it is a ratio of sums.

    Of n_g numbers with sum S_g in cluster g of G, error² = G / (G - 1) · Σ(S_g - mean · n_g)² / (Σn_g)².
    """
    groups, numbers = groups[~np.isnan(numbers)], numbers[~np.isnan(numbers)]
    mean, count = float(numbers.mean()), len(np.unique(groups))
    if count < 2:
        return None, None
    squares = float(np.square(np.bincount(groups, numbers - mean)).sum())
    half = 1.96 * (count / (count - 1) * squares) ** 0.5 / len(numbers)
    return mean - half if (numbers < 0).any() else max(mean - half, 0.0), mean + half


def _figure(runs: Floats, rows: int, expected: float | None, low: float | None, high: float | None) -> Figure:
    sd = float(runs.std(ddof=1)) if len(runs) > 1 else None
    return Figure(float(runs.mean()), expected, low, high, sd, rows)


def _notes(everything: Measured, kind: str, group: str | None) -> tuple[str, ...]:
    notes = {
        "no figures of all rows: subsets ask in different ways": not everything.figures,
        NO_GROUP: group is None,
        "some rows have one image: accuracy is of these alone": {"accuracy", "text"} <= everything.figures.keys(),
        "ties are not known: the file has outcomes, not scores": everything.ties is None and kind == "matching",
    }
    return tuple(note for note, holds in notes.items() if holds)
