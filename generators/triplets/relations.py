"""The relations of a finished stage of scene graphs, read by polars; memory holds no text but that of a few rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import TERMS
from twinset.generators.scene_graphs.source import NO_RELATION, PHOTO, TEXTS
from twinset.shards.finished_stage import FinishedStage

PART = 1 << 20  # relations that are read together
SAID = ("subject", "predicate", "object")


@dataclass(frozen=True)
class Relations:
    """One row a relation, in the order of the stage; its number there is what triplets name it by.

    index: the columns of `generators.scene_graphs.source.SceneGraphs`. silent: ``photo`` and ``caption`` of captions
    without relations. captions: how many were parsed. where: the stage, for messages.
    """

    index: pl.LazyFrame
    silent: pl.DataFrame
    captions: int
    where: str = "the table of relations"

    def parts(self) -> Iterator[pl.LazyFrame]:
        """`PART` of them at a time, with their ``row``."""
        for start in range(0, self.index.select(pl.len()).collect().item(), PART):
            yield self.index.slice(start, PART).with_row_index("row", start)

    def rows(self, numbers: NDArray[np.integer]) -> pl.DataFrame:
        """The rows of these numbers in ascending order, each once, with their ``row``."""
        wanted, parts = np.unique(numbers), [self.index.head(0).with_row_index("row").collect()]
        for number, part in enumerate(self.parts()):
            first, last = np.searchsorted(wanted, (number * PART, (number + 1) * PART))
            here = pl.DataFrame({"row": wanted[first:last].astype(np.uint32)}).lazy()
            if first < last:
                parts.append(part.join(here, on="row", how="semi", maintain_order="left").collect())
        return pl.concat(parts)

    def texts(self, numbers: NDArray[np.integer]) -> pl.DataFrame:
        """What each of these relations says and where: surface words, `TEXTS`, terms; null for a negative number."""
        wanted = pl.DataFrame({"row": numbers.astype(np.int64)})
        rows = self.only(*SAID, *TEXTS, *TERMS).rows(numbers[numbers >= 0]).with_columns(pl.col("row").cast(pl.Int64))
        return wanted.join(rows, on="row", how="left", maintain_order="left")

    def only(self, *columns: str) -> Relations:
        """These columns of them."""
        return replace(self, index=self.index.select(columns))

    def begins(self) -> pl.LazyFrame:
        """The first relation of each caption; relations of one caption follow each other."""
        caption = pl.col("caption_id")
        return self.index.filter(caption.ne_missing(caption.shift()))


def load_relations(graphs: FinishedStage, folder: Path) -> Relations:
    """The relations of a stage; raises `WrongUse` where it has none. folder: as `FinishedStage.frame`."""
    index = graphs.frame(folder)
    if not index.select(pl.len()).collect().item():
        raise WrongUse(f"{graphs.where}: no relation in its {graphs.record.planned} captions; name other captions")
    rejected = pl.DataFrame(pl.from_arrow(graphs.rejected(("reason", "detail"))))
    silent = rejected.filter(pl.col("reason") == NO_RELATION, pl.col("detail").str.contains("\t"))
    parts = pl.col("detail").str.splitn("\t", 2).struct
    silent = silent.select(parts.field("field_0").alias(PHOTO), parts.field("field_1").alias("caption"))
    return Relations(index, silent, graphs.record.planned, graphs.where)


def identity(name: str) -> pl.Expr:
    """A number for each name, equal for equal ones: of 12 million names two are taken for one with a chance of 4e-6."""
    return pl.col(name).hash()
