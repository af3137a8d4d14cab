"""The tables of a grid: figures of each arm with intervals, and the paper's below them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from twinset.evaluation.metrics.figures import Figure
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.tables import Row, Table, as_csv, as_markdown
from twinset.shards.storage.whole_file import write_text
from twinset.training.grids.design import MEAN, Design, Test

NOTE = (
    "Percent, the mean over seeds. In brackets a 95 % interval by resampling groups of the test, and seeds where there "
    "are several. Rows with (paper) are what the paper reports, of its own models and data."
)
Figures = Mapping[str, Figure]


def write_tables(design: Design, scores: Mapping[str, Mapping[str, Sequence[Path]]], out: Path) -> list[Path]:
    """Write ``grid.md`` and ``grid.csv``; returns their paths.

    Args:
        scores: by test and arm, the score file of each seed.
    """
    measured = {
        test: {arm: measure(paths, label=test).all.figures for arm, paths in files.items()}
        for test, files in scores.items()
    }
    tables = []
    for name, test in design.tests.items():
        arms = _means(test, measured, design.arms) if test.mean_of else measured.get(name)
        if arms:
            tables.append(Table(name, test.title, ["arm", *test.heads], 1, [*_rows(design, name, arms)]))
    written = {table.name for table in tables}
    left_out = [test.title for name, test in design.tests.items() if name not in written]
    text = "\n".join(f"## {as_markdown(table, {})}" for table in tables)
    lacking = f"\nNot tested here: {'; '.join(left_out)}.\n" if left_out else ""
    write_text(out / "grid.md", f"# {design.paper}\n\n{NOTE}\n\n{text}{lacking}")
    cells = [
        Row([table.title, row.cells[0], head, cell], row.kind, row.source)
        for table in tables
        for row in table.rows
        for head, cell in zip(table.heads[1:], row.cells[1:], strict=True)
        if cell is not None
    ]
    write_text(out / "grid.csv", as_csv(Table("grid", design.paper, ("test", "arm", "figure", "percent"), 3, cells)))
    return [out / "grid.md", out / "grid.csv"]


def _means(test: Test, measured: Mapping[str, Mapping[str, Figures]], arms: Iterable[str]) -> dict[str, Figures]:
    """The mean of each arm that has all figures."""
    means = dict[str, Figures]()
    for arm in arms:
        figures = [measured.get(part, {}).get(arm, {}).get(name) for part in test.mean_of for name in test.figures]
        values = [figure.value for figure in figures if figure is not None]
        if len(values) == len(figures):
            means[arm] = {MEAN: Figure(fmean(values))}
    return means


def _rows(design: Design, test: str, measured: Mapping[str, Figures]) -> Iterator[Row]:
    heads = design.tests[test].heads
    for name, arm in design.arms.items():
        if name in measured:
            yield Row([arm.title, *(measured[name].get(head) for head in heads)])
        if paper := arm.paper.get(test):
            cells = [Figure(paper[head]) if head in paper else None for head in heads]
            yield Row([f"{arm.title} (paper)", *cells], "published", design.paper)
