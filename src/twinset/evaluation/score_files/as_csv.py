"""A table of scores as CSV, which gives the same figures when it is read again."""

from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from twinset.contracts.errors import WrongUse
from twinset.evaluation.score_files.opening import open_scores
from twinset.shards.storage.whole_file import whole_file


def write_csv(file: str | Path, to: Path) -> None:
    """Write all columns of a Parquet or CSV file of scores as CSV.

    Raises:
        WrongUse: ``to`` is not called ``.csv``, the file cannot be read, or a column holds lists.
    """
    if to.suffix.lower() != ".csv":
        raise WrongUse(f"--scores {to}: is written as CSV; name a file that ends in .csv")
    opened = open_scores(file)
    with whole_file(to) as beside:
        writer: csv.CSVWriter | None = None
        for batch in opened.batches(opened.names):
            if nested := next((name for name, one in batch.columns.items() if pa.types.is_nested(one.type)), None):
                raise WrongUse(f"{file}: column {nested} holds lists, which CSV cannot; read it as Parquet")
            # float32 as the float64 that it is: its own digits would be read as another number.
            found = {
                name: one.cast(pa.float64()) if pa.types.is_floating(one.type) else one
                for name, one in batch.columns.items()
            }
            table = pa.table(found)
            writer = writer or csv.CSVWriter(beside, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
