"""Attack: a Parquet file of a few hundred bytes whose rows expand to gigabytes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinset.shards.storage.parquet_reader import LONGEST_VALUE, ROWS, batches

LONG = "x" * 20_000


def written(folder: Path, columns: dict[str, Any], **settings: Any) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", **settings)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("column", [[LONG] * 65_536, [{"bytes": LONG.encode()}] * 65_536], ids=["text", "struct"])
def test_a_value_that_is_repeated_is_expanded_a_few_rows_at_a_time(tmp_path: Path, column: Any) -> None:
    """The proof of S11: 625 bytes, of which a batch of the usual size took 1.3 GB."""
    path = written(tmp_path, {"a": column})
    assert path.stat().st_size < 2_000
    sizes = [(batch.num_rows, batch.nbytes) for batch in batches(path, ["a"])]
    assert sum(rows for rows, _ in sizes) == 65_536 and max(size for _, size in sizes) < 1.1 * ROWS * LONGEST_VALUE


@pytest.mark.parametrize("value", ["x" * (2 << 20), ["a", "x" * (2 << 20)]], ids=["text", "list"])
def test_a_long_value_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(pa.ArrowException, match="holds a value of 2,097,152 bytes"):
        list(batches(written(tmp_path, {"a": [value]}), ["a"]))


def test_ordinary_files_are_read_as_they_are(tmp_path: Path) -> None:
    rows = range(5000)
    columns = {
        "a": [f"a man {row}" if row % 7 else None for row in rows],
        "listed": [["x", str(row), None] if row % 3 else None for row in rows],
        "image": [{"bytes": bytes([row % 256]), "path": None} if row % 2 else None for row in rows],
    }
    path = written(tmp_path, columns, row_group_size=1000)
    assert pa.Table.from_batches(batches(path, list(columns))).to_pylist() == pa.table(columns).to_pylist()
    (first, *_) = batches(path, ["image.bytes"], 16)
    assert first.num_rows == 16 and first.column("image").to_pylist()[1] == {"bytes": b"\1"}
