"""A table of scores that other code wrote, a row an example, put beside those of a run."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.evaluation.examples import IDENTITY, TOP, Benchmark, LeftOut
from twinset.evaluation.report.model_answers import MATCHINGS_OF_ONE, OPTIONAL, TABLES, scores_path
from twinset.evaluation.run import WrittenScores
from twinset.evaluation.score_files.batch import Batch
from twinset.evaluation.score_files.opening import ScoreFile, open_scores
from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.shards.storage.whole_file import whole_file

KEY = "key"


def take_scores(
    file: Path, benchmark: Benchmark, model: str, out: Path, threshold: float | None = None
) -> WrittenScores:
    """Write a run's score file from a table with the columns of `evaluation.examples`, and ``key`` as they have it.

    A table without keys has a row for each example, in their order. Subset, category and group are the benchmark's.
    Examples without a row count as left out.

    Raises:
        WrongUse: a key is there twice or is not the benchmark's, no example has a row, or a score is missing.
    """
    opened = open_scores(file)
    schema = next((one for one in TABLES if {*one.names[len(IDENTITY) :]} - OPTIONAL <= {*opened.names}), None)
    if schema is None:
        wanted = "; or ".join(", ".join(one.names[len(IDENTITY) :]) for one in TABLES)
        raise WrongUse(f"{file}: no scores in its columns: {opened.listed}; needed are {wanted}")
    names = [name for name in schema.names[len(IDENTITY) :] if name in opened.names and name != TOP]
    rows = _read(opened, schema, names)
    keyed = _places(rows, file) if KEY in opened.names else None
    found, chosen, left_out = dict[str, list[str]](), list[int](), Counter[str]()
    for name, _ in IDENTITY:
        found[name] = []
    for example in benchmark.examples():
        if isinstance(example, LeftOut):
            left_out[example.reason] += 1
            continue
        place = len(chosen) if keyed is None else keyed.pop(example.key, None)
        if place is None:
            left_out["no row"] += 1
            continue
        chosen.append(place)
        for name, values in found.items():
            values.append(getattr(example, name))
    if keyed:
        raise WrongUse(f"{file}: {len(keyed):,} keys are not of {benchmark.name}, the first {next(iter(keyed))!r}")
    if not chosen or (keyed is None and len(chosen) != rows.num_rows):
        raise WrongUse(
            f"{file}: {rows.num_rows:,} rows without keys, and {benchmark.name} asks {len(chosen):,}; write "
            "the column key, as `twinset eval run` does"
        )
    facts = {
        **{"benchmark": benchmark.name, "title": benchmark.title, "model": model, "left_out": dict(left_out)},
        **{"model_digest": sha256_of_file(file)[0], "data_digest": benchmark.digest()},
        **({} if threshold is None else {"threshold": threshold}),
    }
    columns = {**found, **{name: rows.column(name).take(chosen) for name in names}}
    fields = [field for field in schema if field.name in columns]
    metadata = {"twinset": json.dumps(facts, sort_keys=True)}
    path = scores_path(out, benchmark.name, model)
    with whole_file(path) as beside:
        pq.write_table(pa.Table.from_pydict(columns, pa.schema(fields, metadata)), beside)
    return WrittenScores(benchmark.name, model, path, len(chosen), 0)


def _read(file: ScoreFile, schema: pa.Schema, names: list[str]) -> pa.Table:
    keys = [KEY] if KEY in file.names else []
    lots = [
        pa.table(
            {name: batch.texts(name, empty=False) for name in keys}
            | {name: _column(batch, name, schema.field(name).type) for name in names}
        )
        for batch in file.batches([*keys, *names])
    ]
    return pa.concat_tables(lots).combine_chunks()


def _column(batch: Batch, name: str, kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        values, begins = batch.lists(name)
        return pa.ListArray.from_arrays(np.append(begins, len(values)).astype(np.int32), values.astype(np.float32))
    if pa.types.is_boolean(kind):
        return pa.array(batch.flags(name))
    if pa.types.is_integer(kind) and name not in OPTIONAL:
        return pa.array(batch.counts(name), kind)
    numbers = batch.numbers(name, nullable=name in OPTIONAL or name in MATCHINGS_OF_ONE)
    return pa.array(numbers, kind, from_pandas=True)


def _places(rows: pa.Table, file: Path) -> dict[str, int]:
    found = dict[str, int]()
    for row, key in enumerate(rows.column(KEY).to_pylist()):
        if found.setdefault(key, row) != row:
            raise WrongUse(f"{file}: row {row + 1} has the key {key!r} of row {found[key] + 1}; keep one of them")
    return found
