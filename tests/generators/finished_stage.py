"""A finished table stage, written without the engine: what a generator plans and makes, as later stages read it."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.contracts.canonical import digest, sample_key, sha256_of_file
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.licences.terms import TERMS
from twinset.contracts.receipt import IndexRecord
from twinset.contracts.stage import Facts, Stage
from twinset.shards.contracts import Context, Source, TableStage
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

REJECTED = pa.schema([pa.field(name, pa.string()) for name in ("key", "identity", "reason", "detail")])


def finish(
    source: Source, folder: Path, name: str = "scene-graphs", row_group: int = 1000, context: Context | None = None
) -> FinishedStage:
    """Plan and make all of a table source below a folder."""
    generator: Source = source.open(context or Context(name))
    if isinstance(generator, TableStage):
        return _transformed(generator, folder, name, row_group)
    candidates, rows, rejected = list(generator.plan()), [], []
    for candidate, made in zip(candidates, generator.make(candidates), strict=True):
        named = {name: getattr(candidate, name) for name in ("key", "identity", *TERMS)}
        if isinstance(made, TableRows):
            rows += [{**named, **row} for row in made.rows]
        else:
            rejected.append({**named, "reason": made.reason, "detail": made.detail})
    assert generator.row_schema is not None
    ids = [pa.field(name, pa.string()) for name in ("key", "identity", *TERMS)]
    schema = pa.schema([*ids, *generator.row_schema])
    return write_index(pa.Table.from_pylist(rows, schema), folder, name, len(candidates), row_group, rejected)


def _transformed(stage: TableStage, folder: Path, name: str, row_group: int) -> FinishedStage:
    tables = [stage.stage.earlier(read).frame(folder / f"read-{number}") for number, read in enumerate(stage.reads)]
    made = stage.transform(*tables)
    frame = made.collect() if isinstance(made, pl.LazyFrame) else made
    keys = [sample_key(name, *json.loads(identity)) for identity in frame["identity"]]
    frame = frame.with_columns(pl.col(TERMS).cast(pl.String).fill_null(""))  # the engine settles them
    rows = frame.with_columns(key=pl.Series(keys, dtype=pl.String)).to_arrow(compat_level=pl.CompatLevel.oldest())
    return write_index(rows, folder, name, len(rows), row_group)


def write_index(
    rows: pa.Table,
    folder: Path,
    name: str,
    planned: int,
    row_group: int = 1000,
    rejected: Sequence[Mapping[str, str]] = (),
) -> FinishedStage:
    """A finished stage of these rows; ``planned`` candidates gave them, and those ``rejected`` gave none."""
    for term in () if TERMS[0] in rows.column_names else TERMS:
        rows = rows.append_column(term, pa.array([""] * len(rows), pa.string()))
    if "group" not in rows.column_names:
        rows = rows.append_column("group", rows["key"])
    index = folder / layout.meta(name, "index.parquet")
    index.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, index, row_group_size=row_group)
    kept = len(pc.unique(rows["caption_id" if "caption_id" in rows.column_names else "key"]))
    store, settings = Store(str(folder)), {"rows": rows.num_rows}
    facts = Facts(makes="table", settings=settings, inputs="", generator={}, filters=[], libraries={}).model_dump()
    pq.write_table(pa.Table.from_pylist(list(rejected), REJECTED), folder / layout.meta(name, "rejections.parquet"))
    stage = Stage(name=name, facts=facts, content=digest(facts), plan="0" * 32, planned=planned, shards=1, excluded={})
    record = IndexRecord(
        content=stage.content,
        plan=stage.plan,
        digest=sha256_of_file(index)[0],
        planned=planned,
        kept=kept,
        rows=rows.num_rows,
        files={"index.parquet": sha256_of_file(index)},
    )
    store.write(layout.meta(name, "stage.json"), stage.to_bytes())
    store.write(layout.meta(name, "index.json"), record.to_bytes())
    return FinishedStage(store, name)


def finished(folder: Path, home: str = "scene-graphs") -> Callable[[str], FinishedStage]:
    """What `shards.contracts.Context.earlier` is for sources that read that stage."""
    return lambda stage: FinishedStage(Store(str(folder)), home)
