"""What papers report on the benchmarks, with the table that each number comes from: ``published.yaml`` beside this."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Literal

import pydantic
import yaml

FILE = Path(__file__).with_name("published.yaml")

Kind = Literal["chance", "human", "published"]


@dataclass(frozen=True, slots=True)
class Published:
    """What one table reports of one model.

    figures: percent, by subset or category ("": all) and name of the figure. pooled: which subsets or
    categories an entry of ``figures`` is of together.
    """

    benchmark: str
    name: str
    kind: Kind
    figures: dict[str, dict[str, float]]
    source: str
    pooled: dict[str, list[str]]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _Row(_Strict):
    name: str
    kind: Kind = "published"
    cells: list[float]


class _Table(_Strict):
    benchmark: str
    paper: str
    table: str
    note: str = ""
    columns: dict[str, list[str]]
    pooled: dict[str, list[str]] = {}
    rows: list[_Row]

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> _Table:
        cells = sum(map(len, self.columns.values()))
        short = [row.name for row in self.rows if len(row.cells) != cells]
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
    rows = []
    for row in table.rows:
        cells = iter(row.cells)
        figures = {subset: {name: next(cells) for name in names} for subset, names in table.columns.items()}
        rows.append(Published(table.benchmark, row.name, row.kind, figures, source, table.pooled))
    return rows
