"""A table of scores that other code wrote, a row an example, put beside those of a run."""

from collections import Counter
from pathlib import Path

import polars as pl
import pyarrow as pa

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.evaluation import examples as asked
from twinset.evaluation.examples import IDENTITY, TOP, Benchmark, Example, LeftOut, Matching
from twinset.evaluation.metrics.matching import CORRECT, FINER, PAIRING, RELEASED, SCORES
from twinset.evaluation.metrics.measure import APART
from twinset.evaluation.report.model_answers import OPTIONAL, scores_path
from twinset.evaluation.run import WrittenScores, refuse_shared_files
from twinset.evaluation.score_files.opening import Batch, ScoreFile, open_scores, save_scores, wide_enough

KEY = "key"
#: What a file may be, by what its benchmark asks; and how other code calls a column.
TABLES: dict[type[Example], tuple[pa.Schema, ...]] = {
    asked.Matching: (asked.MATCHING_SCORES, asked.MATCHING_CHOICES, asked.MATCHING_OUTCOMES),
    asked.Query: (asked.QUERY_RANKS,),
    asked.Statement: (asked.STATEMENT_MARGINS,),
}
CALLED = dict(zip((*RELEASED[0], FINER[0]), (*RELEASED[1], *CORRECT), strict=True))
SECOND_IMAGE = {*SCORES[2:], *FINER[1:]}  # columns that are null of one image


def take_scores(
    file: Path, benchmark: Benchmark, model: str, out: Path, threshold: float | None = None
) -> WrittenScores:
    """Write a run's score file from a table with the columns of `evaluation.examples`, and ``key`` as they have it.

    Subset, category and group are the benchmark's. Examples without a row count as left out.

    Raises:
        WrongUse: a key is there twice or is not the benchmark's, no example has a row, or a score is missing.
    """
    opened, every = open_scores(file), [*benchmark.examples()]
    left_out = Counter(example.reason for example in every if isinstance(example, LeftOut))
    examples = [example for example in every if not isinstance(example, LeftOut)]
    if not examples:
        raise WrongUse(f"{benchmark.title}: all examples are left out; there is nothing to score")
    refuse_shared_files([benchmark], [model], out)
    schema, columns = _columns(opened, benchmark.name, examples[0])
    rows = _read(opened, schema, columns)
    identity = pl.DataFrame([{name: getattr(example, name) for name, _ in IDENTITY} for example in examples])
    opened.refuse_repeats([KEY], "keep one row of each")
    for (strange,) in rows.join(identity, KEY, "anti").select(KEY).head(1).iter_rows():
        raise WrongUse(f"{file}: the key {strange!r} is not of {benchmark.name}; remove its row")
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
    written = pa.schema([field for field in schema if field.name in table.columns])
    written = wide_enough(written, rows.select(pl.col(pl.Float64)).to_numpy())
    path = scores_path(out, benchmark.name, model)
    save_scores(table.select(written.names).to_arrow().cast(written), facts, path)
    return WrittenScores(benchmark.name, model, path, len(table), 0)


def _columns(file: ScoreFile, benchmark: str, example: Example) -> tuple[pa.Schema, dict[str, str]]:
    """The table that a file is, of those that such an example has; and what the file calls its columns."""
    one_image = isinstance(example, Matching) and len(example.images) == 1
    optional = OPTIONAL | {*PAIRING, "margin"} | (SECOND_IMAGE if one_image else set())
    wanted = []
    for schema in TABLES.get(type(example), ()):
        names = [name for name in schema.names[len(IDENTITY) :] if name != TOP]
        columns = {name: called for name in names for called in (CALLED.get(name, ""), name) if called in file.names}
        if {*names} - optional <= columns.keys():
            return schema, columns
        wanted.append(", ".join(name for name in names if name not in optional))
    needed = "; or ".join(wanted) or "scores of pairs, as twinset eval questions asks for"
    raise WrongUse(f"{file.where}: no scores in its columns: {file.listed}; {benchmark} needs {needed}")


def _read(file: ScoreFile, schema: pa.Schema, names: dict[str, str]) -> pl.DataFrame:
    """Its columns as those of a table, and ``key``."""
    batch = file.read([KEY, *names.values()])
    return pl.DataFrame(
        {KEY: pl.Series(batch.texts(KEY, empty=False))}
        | {name: pl.Series(_column(batch, called, schema.field(name).type)) for name, called in names.items()}
    )


def _column(batch: Batch, name: str, kind: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(kind) or name in CORRECT:
        return pa.array(batch.flags(name)).cast(kind)
    if pa.types.is_integer(kind) and name not in OPTIONAL:
        return pa.array(batch.counts(name), kind)
    numbers = batch.numbers(name, nullable=name not in (*SCORES[:2], "margin"))
    return pa.array(numbers, pa.float64() if pa.types.is_floating(kind) else kind, from_pandas=True)
