"""The tables of a grid: figures of each arm with intervals, and the paper's below them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.over_seeds import Resampled, mean_of, over_seeds
from twinset.evaluation.report.tables import Cell, Row, Table, as_csv, as_markdown
from twinset.shards.storage.whole_file import write_text
from twinset.training.grids.design import Design

#: 97.5 % points of Student's t distribution, by degrees of freedom; of more than these the last.
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
NOTE = (
    "Percent, the mean over seeds. In brackets a 95 % interval by resampling groups of the test, and seeds where there "
    "are several. Rows with (paper) are what the paper reports, of its own models and data."
)


def write_tables(
    design: Design,
    scores: Mapping[str, Sequence[tuple[str, int, Path]]],
    halves: Mapping[tuple[str, int], Mapping[str, Any]],
    out: Path,
) -> dict[str, Any]:
    """Write ``grid.md``, ``grid.csv`` and ``grid.json``.

    Args:
        scores: by test, the score file of each arm and seed; one that is absent was not asked.
        halves: what detectors were tested on, by arm and seed.

    Returns:
        ``{"tables": PATHS, "figures": {TEST: {ARM: {FIGURE: [value, low, high]}}}}``.
    """
    tables, figures = [], dict[str, Any]()
    drawn = dict[str, dict[str, dict[str, Resampled]]]()  # by test, arm and figure
    for test, files in scores.items():
        by_arm: dict[str, list[Path]] = {}
        for arm, _, path in files:
            if path.is_file():
                by_arm.setdefault(arm, []).append(path)
        drawn[test] = {arm: over_seeds(paths, test) for arm, paths in by_arm.items()}
        asked = design.tests[test].figures
        tables.append(_tested(design, test, design.tests[test].title, asked, drawn[test], figures))
    for name, mean in design.means.items():
        every = [drawn.get(test, {}) for test in mean.tests]
        arms = {
            arm: {mean.figure: mean_of([one[arm][mean.figure] for one in every])}
            for arm in design.arms
            if all(mean.figure in one.get(arm, {}) for one in every)
        }
        if arms:
            tables.append(_tested(design, name, mean.title, (mean.figure,), arms, figures))
    of_detectors: dict[str, dict[str, list[Figure]]] = {}
    for (arm, _), facts in halves.items():
        for half, one in facts.items():
            values = of_detectors.setdefault(arm, {}).setdefault(f"{half} accuracy", [])
            values.append(Figure(100 * float(one["test_accuracy"])))
    if of_detectors:
        names = tuple(dict.fromkeys(name for row in of_detectors.values() for name in row))
        found = {arm: {name: _over_seeds(row.get(name, [])) for name in names} for arm, row in of_detectors.items()}
        figures["detectors"] = {arm: {name: _values(one) for name, one in row.items()} for arm, row in found.items()}
        tables.append(_table(design, "detectors", "Detectors, on groups held out", names, found))
    text = "\n".join(f"## {table.title}\n\n{as_markdown(table)}\n" for table in tables)
    left_out = [test.title for name, test in design.tests.items() if name not in scores]
    lacking = f"\nNot tested here: {'; '.join(left_out)}.\n" if left_out else ""
    write_text(out / "grid.md", f"# {design.paper}\n\n{NOTE}\n\n{text}{lacking}")
    write_text(out / "grid.csv", "\n".join(as_csv(table) for table in tables))
    write_text(out / "grid.json", json.dumps(figures, indent=1, sort_keys=True) + "\n")
    return {"tables": [str(out / f"grid.{ending}") for ending in ("md", "csv", "json")], "figures": figures}


def _tested(
    design: Design,
    name: str,
    title: str,
    asked: Sequence[str],
    drawn: Mapping[str, Mapping[str, Resampled]],
    figures: dict[str, Any],
) -> Table:
    """The table of a test or of a mean, whose figures are added to those of all."""
    found = {
        arm: {figure: one[figure].figure() if figure in one else None for figure in asked} for arm, one in drawn.items()
    }
    figures[name] = {arm: {figure: _values(one) for figure, one in row.items()} for arm, row in found.items()}
    return _table(design, name, title, asked, found)


def _table(
    design: Design, name: str, title: str, asked: Sequence[str], found: Mapping[str, Mapping[str, Figure | None]]
) -> Table:
    rows = []
    for arm, one in design.arms.items():
        if arm in found:
            cells: list[Cell] = [found[arm].get(figure) for figure in asked]
            rows.append(Row([one.title, *cells]))
        if reported := one.paper.get(name):
            paper: list[Cell] = [Figure(reported[figure]) if figure in reported else None for figure in asked]
            rows.append(Row([f"{one.title} (paper)", *paper], "published", design.paper))
    return Table(name, title, ["arm", *asked], 1, rows)


def _over_seeds(figures: Sequence[Figure]) -> Figure | None:
    """One seed's figure, or the mean of several with an interval over them."""
    if len(figures) < 2:
        return figures[0] if figures else None
    values = [one.value for one in figures]
    half = T[min(len(values) - 2, len(T) - 1)] * stdev(values) / len(values) ** 0.5
    return Figure(fmean(values), None, max(0.0, fmean(values) - half), min(100.0, fmean(values) + half))


def _values(one: Figure | None) -> list[float | None] | None:
    return None if one is None else [one.value, one.low, one.high]
