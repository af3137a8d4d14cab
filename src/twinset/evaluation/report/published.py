"""What papers report on the benchmarks, with the table that each number comes from: ``published.yaml`` beside this."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import yaml

FILE = Path(__file__).with_name("published.yaml")

Kind = Literal["chance", "human", "published"]
Column = tuple[str, str]  # subset or category, and figure
ALL, MEAN = "all", "mean"  # columns are averaged; the name of that mean


@dataclass(frozen=True, slots=True)
class Published:
    """What one table reports of one model.

    figures: percent, by subset or category ("": all) and name of the figure; without those of cells that it leaves
    empty. pooled: which subsets or categories an entry of ``figures`` is of together. columns: of the table, in order.
    means: of which columns a table has means, by name. average: the mean, of a row that prints no cells.
    """

    benchmark: str
    name: str
    kind: Kind
    figures: dict[str, dict[str, float]]
    source: str
    pooled: dict[str, list[str]]
    columns: tuple[Column, ...]
    means: Mapping[str, tuple[Column, ...]]
    average: float | None = None

    def cells(self) -> list[float | None]:
        """Of its columns, then its means; None where they are not printed."""
        printed = [self.figures.get(part, {}).get(figure) for part, figure in self.columns]
        return [*printed, *map(self.mean, self.means)]

    def mean(self, name: str) -> float | None:
        """Of the cells of a mean; None where some are not printed."""
        cells = [self.figures.get(part, {}).get(figure) for part, figure in self.means[name]]
        known = [cell for cell in cells if cell is not None]
        return fmean(known) if known and len(known) == len(cells) else self.average


@cache
def published() -> tuple[Published, ...]:
    """Every row of the file, in its order; raises `ValueError` where a row has too few or too many cells."""
    file = yaml.safe_load(FILE.read_text("utf-8"))
    return tuple(row for table in file["tables"] for row in _rows(table, file["papers"][table["paper"]]))


def _rows(table: dict[str, Any], paper: str) -> Iterator[Published]:
    source = f"{paper}, {table['table']}" + (f" ({table['note']})" if "note" in table else "")
    columns = tuple((part, name) for part, names in table["columns"].items() for name in names)
    means = {name: tuple(col for col in columns if col[0] in parts) for name, parts in table.get("means", {}).items()}
    if average := table.get("average"):
        means[MEAN] = tuple(col for col in columns if average in (ALL, col[1]))
    for row in table["rows"]:
        figures = dict[str, dict[str, float]]()
        for (part, name), cell in zip(columns, row.get("cells", [None] * len(columns)), strict=True):
            if cell is not None:
                figures.setdefault(part, {})[name] = cell
        facts = (table["benchmark"], row["name"], row.get("kind", "published"), figures, source)
        yield Published(*facts, table.get("pooled", {}), columns, means, row.get("average"))
