"""What papers report on the benchmarks, with the table that each number comes from: ``published.yaml`` beside this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Literal

import pydantic
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

    average: as printed, of the columns of ``means[MEAN]``, and of the rows of the same name and table in the benchmarks
    ``average_with``. means: of which columns a table has means, by name.
    """

    benchmark: str
    name: str
    kind: Kind
    figures: dict[str, dict[str, float]]
    source: str
    pooled: dict[str, list[str]]
    columns: tuple[Column, ...]
    average: float | None = None
    average_with: tuple[str, ...] = ()
    means: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)

    def mean(self, name: str) -> float | None:
        """Of the cells of a mean; None where some are not printed."""
        cells = [self.figures.get(part, {}).get(figure) for part, figure in self.means[name]]
        known = [cell for cell in cells if cell is not None]
        return fmean(known) if known and len(known) == len(cells) else None


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _Row(_Strict):
    name: str
    kind: Kind = "published"
    cells: list[float | None] = []
    average: float | None = None


class _Table(_Strict):
    benchmark: str
    paper: str
    table: str
    note: str = ""
    columns: dict[str, list[str]]
    pooled: dict[str, list[str]] = {}
    average: str = ""
    average_with: list[str] = []
    means: dict[str, list[str]] = {}
    rows: list[_Row]

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> _Table:
        cells = sum(map(len, self.columns.values()))
        short = [row.name for row in self.rows if len(row.cells) != cells and (row.cells or row.average is None)]
        if short:
            raise ValueError(f"{self.benchmark}, {self.table}: not {cells} cells in the rows {', '.join(short)}")
        return self


class _File(_Strict):
    papers: dict[str, str]
    tables: list[_Table]


@cache
def published() -> tuple[Published, ...]:
    """Every row of the file, in its order."""
    file = _File.model_validate(yaml.safe_load(FILE.read_text("utf-8")))
    return tuple(chain.from_iterable(_rows(table, file.papers[table.paper]) for table in file.tables))


def _rows(table: _Table, paper: str) -> list[Published]:
    source = f"{paper}, {table.table}" + (f" ({table.note})" if table.note else "")
    columns = tuple((part, name) for part, names in table.columns.items() for name in names)
    means = {name: tuple(column for column in columns if column[0] in parts) for name, parts in table.means.items()}
    if table.average:
        means[MEAN] = tuple(column for column in columns if table.average in (ALL, column[1]))
    rows = []
    for row in table.rows:
        figures = dict[str, dict[str, float]]()
        for (part, name), cell in zip(columns, row.cells, strict=False):  # a row may have an average alone
            if cell is not None:
                figures.setdefault(part, {})[name] = cell
        rows.append(
            Published(
                table.benchmark, row.name, row.kind, figures, source, table.pooled, columns, row.average,
                tuple(table.average_with), means,
            )
        )  # fmt: skip
    return rows
