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
    rows = 0
    for batch in batches(path, ["a"]):
        assert batch.nbytes < 1.1 * ROWS * LONGEST_VALUE
        rows += batch.num_rows
    assert rows == 65_536


@pytest.mark.parametrize("value", ["x" * (2 << 20), ["a", "x" * (2 << 20)]], ids=["text", "list"])
def test_a_long_value_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(pa.ArrowException, match="holds a value of 2,097,152 bytes"):
        list(batches(written(tmp_path, {"a": [value]}), ["a"]))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"data_page_version": "2.0"},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        {"row_group_size": 1000, "data_page_size": 100},
    ],
)
def test_ordinary_files_are_read_as_they_are(tmp_path: Path, settings: dict[str, Any]) -> None:
    count = 5000
    columns: dict[str, Any] = {"a": [f"a man {one}" if one % 7 else None for one in range(count)]}
    if "column_encoding" not in settings:
        columns["number"] = list(range(count))
        columns["listed"] = [["x", str(one), None] if one % 3 else None for one in range(count)]
        columns["image"] = [{"bytes": bytes([one % 256]), "path": None} if one % 2 else None for one in range(count)]
    path = written(tmp_path, columns, **settings)
    assert pa.Table.from_batches(batches(path, list(columns))).to_pylist() == pa.table(columns).to_pylist()
    if "image" in columns:
        (first, *_) = batches(path, ["image.bytes"], 16)
        assert first.num_rows == 16 and first.column("image").to_pylist()[1] == {"bytes": b"\1"}


def test_damaged_pages_are_an_error_of_arrow(tmp_path: Path) -> None:
    whole = written(tmp_path, {"a": [f"a man {one}" for one in range(200)]}).read_bytes()
    path = tmp_path / "damaged.parquet"
    cut = [whole[:at] + whole[at + size :] for size in (1, 4, 8) for at in range(4, 400)]
    for content in [*(whole[:at] + b"\xff" + whole[at + 1 :] for at in range(4, 400, 5)), *cut]:
        path.write_bytes(content)
        try:
            list(batches(path, ["a"]))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            assert str(error)
