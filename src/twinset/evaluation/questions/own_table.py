"""A table of scores that other code wrote, a row an example, put beside those of a run."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.evaluation import examples as asked
from twinset.evaluation.examples import IDENTITY, TOP, Benchmark, Example, LeftOut, Matching
from twinset.evaluation.metrics.matching import CORRECT, FINER, PAIRING, RELEASED, SCORES
from twinset.evaluation.metrics.measure import APART
from twinset.evaluation.report.model_answers import OPTIONAL, scores_path
from twinset.evaluation.run import WrittenScores
from twinset.evaluation.score_files.opening import Batch, ScoreFile, open_scores
from twinset.shards.storage.whole_file import whole_file

KEY = "key"
#: What a file may be, by what its benchmark asks; and how other code calls a column.
TABLES: dict[type[Example], tuple[pa.Schema, ...]] = {
    asked.Matching: (asked.MATCHING_SCORES, asked.MATCHING_CHOICES, asked.MATCHING_OUTCOMES),
    asked.Query: (asked.QUERY_RANKS,),
    asked.Statement: (asked.STATEMENT_MARGINS,),
    asked.Grounding: (asked.GROUNDING_ERRORS,),
}
CALLED = dict(zip((*RELEASED[0], FINER[0]), (*RELEASED[1], *CORRECT), strict=True))
SECOND_IMAGE = {*SCORES[2:], *FINER[1:]}  # columns that are null of one image


def take_scores(
    file: Path, benchmark: Benchmark, model: str, out: Path, threshold: float | None = None
) -> WrittenScores:
    """Write a run's score file from a table with the columns of `evaluation.examples`, and ``key`` as they have it.

    A table without keys has a row for each example, in their order. Subset, category and group are the benchmark's.
    Examples without a row count as left out.

    Raises:
        WrongUse: a key is there twice or is not the benchmark's, no example has a row, or a score is missing.
    """
    opened, every = open_scores(file), [*benchmark.examples()]
    left_out = Counter(one.reason for one in every if isinstance(one, LeftOut))
    examples = [one for one in every if not isinstance(one, LeftOut)]
    if not examples:
        raise WrongUse(f"{benchmark.title}: all examples are left out; there is nothing to score")
    schema, columns = _columns(opened, benchmark.name, examples[0])
    rows = _read(opened, schema, columns)
    identity = pl.DataFrame(
        [[getattr(one, name) for name, _ in IDENTITY] for one in examples], [*dict(IDENTITY)], orient="row"
    )
    if KEY in opened.names:
        opened.refuse_repeats([KEY], "keep one row of each")
        for (strange,) in rows.join(identity, KEY, "anti").select(KEY).head(1).iter_rows():
            raise WrongUse(f"{file}: the key {strange!r} is not of {benchmark.name}; remove its row")
    elif len(rows) != len(examples):
        raise WrongUse(
            f"{file}: {len(rows):,} rows without keys, and {benchmark.name} asks {len(examples):,}; write the column "
            "key, as `twinset eval run` does"
        )
    else:
        rows = rows.with_columns(identity[KEY])
    joined = identity.join(rows, KEY, maintain_order="left")
    if lost := len(identity) - len(joined):
        left_out["no row"] = lost
    facts = {
        **{"benchmark": benchmark.name, "title": benchmark.title, "model": model, "left_out": dict(left_out)},
        **{"model_digest": sha256_of_file(file)[0], "data_digest": benchmark.digest()},
        **({} if threshold is None else {"threshold": threshold}),
        **({"metrics": [*benchmark.metrics]} if benchmark.metrics else {}),
        **({APART: True} if benchmark.apart and joined["subset"].n_unique() > 1 else {}),
    }
    # A kind of table is known by its columns: those that the file lacks are null.
    lacking = {name: None for name in schema.names if name not in {*joined.columns, *OPTIONAL}}
    table = joined.with_columns(**lacking)
    fields = [field for field in schema if field.name in table.columns]
    written = pa.schema(fields, {"twinset": json.dumps(facts, sort_keys=True)})
    path = scores_path(out, benchmark.name, model)
    with whole_file(path) as beside:
        pq.write_table(table.select(written.names).to_arrow().cast(written), beside)
    return WrittenScores(benchmark.name, model, path, len(table), 0)


def _columns(file: ScoreFile, benchmark: str, example: Example) -> tuple[pa.Schema, dict[str, str]]:
    """The table that a file is, of those that such an example has; and what the file calls its columns."""
    one_image = isinstance(example, Matching) and len(example.images) == 1
    optional = OPTIONAL | {*PAIRING, "margin"} | (SECOND_IMAGE if one_image else set())
    wanted = []
    for schema in TABLES[type(example)]:
        names = [name for name in schema.names[len(IDENTITY) :] if name != TOP]
        found = {name: called for name in names for called in (CALLED.get(name, ""), name) if called in file.names}
        if {*names} - optional <= found.keys():
            return schema, found
        wanted.append(", ".join(name for name in names if name not in optional))
    raise WrongUse(f"{file.where}: no scores in its columns: {file.listed}; {benchmark} needs {'; or '.join(wanted)}")


def _read(file: ScoreFile, schema: pa.Schema, names: dict[str, str]) -> pl.DataFrame:
    """Its columns as those of a table, and ``key`` where it has one."""
    keys = [KEY] if KEY in file.names else []
    batch = file.read([*keys, *names.values()])
    return pl.DataFrame(
        {name: pl.Series(batch.texts(name, empty=False)) for name in keys}
        | {name: pl.Series(_column(batch, called, schema.field(name).type)) for name, called in names.items()}
    )


def _column(batch: Batch, name: str, kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        values, begins = batch.lists(name)
        return pa.ListArray.from_arrays(np.append(begins, len(values)).astype(np.int32), values.astype(np.float32))
    if pa.types.is_boolean(kind) or name in CORRECT:
        return pa.array(batch.flags(name)).cast(kind)
    if pa.types.is_integer(kind) and name not in OPTIONAL:
        return pa.array(batch.counts(name), kind)
    numbers = batch.numbers(name, nullable=name not in (*SCORES[:2], "margin"))
    return pa.array(numbers, kind, from_pandas=True)
