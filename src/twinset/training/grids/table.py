"""The tables of a grid: figures of each arm with intervals, and the paper's below them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.tables import Cell, Row, Table, as_csv, as_markdown
from twinset.shards.storage.whole_file import write_text
from twinset.training.grids.design import MEAN, Design

NOTE = (
    "Percent, the mean over seeds. In brackets a 95 % interval by resampling groups of the test, and seeds where there "
    "are several. Rows with (paper) are what the paper reports, of its own models and data."
)


def write_tables(design: Design, scores: Mapping[str, Sequence[tuple[str, Path]]], out: Path) -> dict[str, Any]:
    """Write ``grid.md``, ``grid.csv`` and ``grid.json``.

    Args:
        scores: by test, arms with the score file of each seed; one that is absent was not asked.

    Returns:
        ``{"tables": PATHS, "figures": {TEST: {ARM: {FIGURE: [value, low, high]}}}}``.
    """
    tables, figures = [], dict[str, Any]()
    drawn = dict[str, dict[str, dict[str, Figure]]]()  # by test, arm and figure
    for test, files in scores.items():
        by_arm: dict[str, list[Path]] = {}
        for arm, path in files:
            if path.is_file():
                by_arm.setdefault(arm, []).append(path)
        drawn[test] = {arm: measure(paths, label=test).all.figures for arm, paths in by_arm.items()}
        one = design.tests[test]
        tables.append(_tested(design, test, one.title, one.figures, drawn[test], figures, one.heads))
    for name, mean in design.means.items():
        cells = [(test, figure) for test in mean.tests for figure in mean.figures]
        arms = {
            arm: {MEAN: Figure(fmean(drawn[test][arm][figure].value for test, figure in cells))}
            for arm in design.arms
            if all(figure in drawn.get(test, {}).get(arm, {}) for test, figure in cells)
        }
        if arms:
            tables.append(_tested(design, name, mean.title, (MEAN,), arms, figures, {}))
    text = "\n".join(f"## {as_markdown(table, {})}" for table in tables)
    left_out = [test.title for name, test in design.tests.items() if name not in scores]
    lacking = f"\nNot tested here: {'; '.join(left_out)}.\n" if left_out else ""
    write_text(out / "grid.md", f"# {design.paper}\n\n{NOTE}\n\n{text}{lacking}")
    every = [
        Row([table.title, row.cells[0], head, cell], row.kind, row.source)
        for table in tables
        for row in table.rows
        for head, cell in zip(table.heads[1:], row.cells[1:], strict=True)
        if cell is not None
    ]
    write_text(out / "grid.csv", as_csv(Table("grid", design.paper, ("test", "arm", "figure", "percent"), 3, every)))
    write_text(out / "grid.json", json.dumps(figures, indent=1, sort_keys=True) + "\n")
    return {"tables": [str(out / f"grid.{ending}") for ending in ("md", "csv", "json")], "figures": figures}


def _tested(
    design: Design,
    name: str,
    title: str,
    asked: Sequence[str],
    drawn: Mapping[str, Mapping[str, Figure]],
    figures: dict[str, Any],
    heads: Mapping[str, str],
) -> Table:
    """The table of a test or of a mean, whose figures are added to those of all."""
    found = {arm: {figure: one.get(figure) for figure in asked} for arm, one in drawn.items()}
    figures[name] = {arm: {figure: _values(one) for figure, one in row.items()} for arm, row in found.items()}
    rows = []
    for arm, one in design.arms.items():
        if arm in found:
            cells: list[Cell] = [found[arm].get(figure) for figure in asked]
            rows.append(Row([one.title, *cells]))
        for of, reported in {"": one.paper, **one.others}.items():
            if test := reported.get(name):
                paper: list[Cell] = [Figure(test[figure]) if figure in test else None for figure in asked]
                rows.append(Row([f"{one.title} (paper{of and ': '}{of})", *paper], "published", design.paper))
    return Table(name, title, ["arm", *(heads.get(figure, figure) for figure in asked)], 1, rows)


def _values(one: Figure | None) -> list[float | None] | None:
    return None if one is None else [one.value, one.low, one.high]
