"""Stages without shards: a table that is computed at once from the indices of earlier stages."""

import json
import signal
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.candidate import Candidate
from twinset.contracts.canonical import canonical_json, sample_key, sha256_of_file
from twinset.contracts.errors import BuildFailed, TwinsetError, WrongUse, in_words
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.source import SOURCES
from twinset.shards.contracts import TableStage
from twinset.shards.plan import PlanSummary, write_plan
from twinset.shards.storage.store import Store
from twinset.stages.finish import INDEX, REJECTIONS, ROW_GROUP, SIZES, index_schemas
from twinset.stages.job import StageWorker

# With polars' handler of SIGINT, set as it is imported, waits begin again: Ctrl-C would not end a build that waits.
signal.siginterrupt(signal.SIGINT, True)


def compute(worker: StageWorker, store: Store) -> pl.DataFrame:
    """What `TableStage.transform` gives, at most ``count`` rows; raises `WrongUse` where an index lacks a column."""
    stage, reads = cast(TableStage, worker.source), ", ".join(worker.source.reads)
    stage.excluded.clear()
    try:
        with store.spool() as folder:
            tables = [stage.stage.earlier(name).frame(folder / str(number)) for number, name in enumerate(stage.reads)]
            rows = stage.transform(*tables)
            frame = rows.collect() if isinstance(rows, pl.LazyFrame) else rows
    except (TwinsetError, OSError):
        raise
    except pl.exceptions.ColumnNotFoundError as error:
        problem = str(error).partition("\n")[0]
        raise WrongUse(f"{worker.name}: {reads} has no column {problem}; name a stage of the right kind") from error
    except Exception as error:
        named = SOURCES.named(worker.source.kind)
        raise BuildFailed(
            f"{worker.name}: transform() of {named} failed: {in_words(error)}; correct it or {reads} "
            "(--verbose shows the traceback)"
        ) from error
    return frame if worker.subset.count is None else frame.head(worker.subset.count)


def write_table(worker: StageWorker, frame: pl.DataFrame, folder: Path) -> PlanSummary:
    """Write index, rejections and the empty list of shards into a folder. Its digest is the sha256 of the index.

    Raises `WrongUse` where two rows have one identity, and `BuildFailed` where a column is not the declared one.
    """
    stage = cast(TableStage, worker.source)
    kept, rejected = index_schemas("table", stage.row_schema)
    if frame.height and (repeated := frame.filter(pl.col("identity").is_duplicated())).height:
        same = repeated["identity"][0]
        raise WrongUse(f"{worker.name}: several rows have the identity {same}; give each row one of its own")
    settled: dict[Terms, Terms] = {}
    # A file that pyarrow opens by its name stays open for as long as the error of a full disk lives.
    with (
        (folder / INDEX).open("wb") as stream,
        pq.ParquetWriter(stream, kept, compression="zstd", store_schema=False, write_statistics=False) as writer,
    ):
        for part in frame.iter_slices(ROW_GROUP):
            writer.write_table(_rows(stage, part, kept, settled), row_group_size=part.height)
    pq.write_table(rejected.empty_table(), folder / REJECTIONS, compression="zstd", store_schema=False)
    (folder / SIZES).write_bytes(canonical_json({}) + b"\n")
    write_plan(iter(()), Candidate, 1, folder)
    return PlanSummary(sha256_of_file(folder / INDEX)[0], frame.height, ())


def _rows(stage: TableStage, part: pl.DataFrame, schema: pa.Schema, settled: dict[Terms, Terms]) -> pa.Table:
    name = stage.stage.name
    identities = part["identity"].to_list()
    keys = [sample_key(name, *json.loads(identity)) for identity in identities]
    columns: dict[str, Any] = {"key": keys, "group": part["group"] if "group" in part.columns else keys}
    columns["split"] = [stage.stage.split] * part.height
    terms = [Terms(*row) for row in part.select(TERMS).iter_rows()]
    for shown in {*terms} - settled.keys():
        settled[shown] = stage.settled((name, identities[terms.index(shown)]), None, (shown,), False)
    columns |= {column: [settled[shown][place] for shown in terms] for place, column in enumerate(TERMS)}
    own = part.select([column for column in schema.names if column not in columns]).to_arrow()
    try:
        columns |= {column: own[column] for column in own.column_names}
        return pa.table([columns[column] for column in schema.names], names=schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise BuildFailed(f"{name}: transform() gives other columns than it declares: {error}; correct it") from error
