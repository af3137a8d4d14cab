"""The relations of a finished stage of scene graphs, read by polars; memory holds no text but that of a few rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from twinset.contracts.errors import WrongUse
from twinset.generators.scene_graphs.source import NO_RELATION, PHOTO
from twinset.shards.finished_stage import FinishedStage


@dataclass(frozen=True)
class Relations:
    """One row a relation, in the order of the stage.

    index: the columns of `generators.scene_graphs.source.SceneGraphs`, and ``row``, which triplets name it by. silent:
    ``photo`` and ``caption`` of captions without relations. captions: how many were parsed.
    """

    index: pl.LazyFrame
    silent: pl.DataFrame
    captions: int

    def rows(self, numbers: pl.Series, *columns: str) -> pl.DataFrame:
        """These rows, each once and in ascending order: ``row``, and columns of text."""
        wanted = numbers.drop_nulls().unique().cast(pl.get_index_type()).implode()
        # A text that was read keeps all that was read with it in memory; one that is put together does not.
        copies = (pl.concat_str(name, pl.lit("")).alias(name) for name in columns)
        rows = self.index.filter(pl.col("row").is_in(wanted)).select("row", *copies)
        return rows.collect(engine="streaming").sort("row")


def load_relations(graphs: FinishedStage, folder: Path) -> Relations:
    """The relations of a stage; raises `WrongUse` where it has none. folder: as `FinishedStage.frame`."""
    index = graphs.frame(folder)
    if not index.select(pl.len()).collect().item():
        raise WrongUse(f"{graphs.where}: no relation in its {graphs.record.planned} captions; name other captions")
    rejected = pl.DataFrame(pl.from_arrow(graphs.rejected(("reason", "detail"))))
    silent = rejected.filter(pl.col("reason") == NO_RELATION, pl.col("detail").str.contains("\t"))
    parts = pl.col("detail").str.splitn("\t", 2).struct
    silent = silent.select(parts.field("field_0").alias(PHOTO), parts.field("field_1").alias("caption"))
    return Relations(index.with_row_index("row"), silent, graphs.record.planned)


def identity(name: str) -> pl.Expr:
    """A number for each name, equal for equal ones: of 12 million names two are taken for one with a chance of 4e-6."""
    return pl.col(name).hash()
