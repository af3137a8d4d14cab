"""Rows of samples and of tables: what is written comes back, with bytes that depend on the rows alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifests.candidate import Candidate
from shards.kinds.pair import PAIR
from shards.kinds.samples import Rejected, Source, TableRows
from shards.rows import JUDGED, KEPT, REJECTED, Row, read_rows, schema_of, write_rows
from shards.table_rows import table_schema, write_table_rows

COLUMNS = pa.schema([("word", pa.string()), ("length", pa.int64())])
ROWS = [
    Row(
        kind=PAIR, key="x-a", identity='["é\\u0000",1]', group="g", split="test", verdict=KEPT,
        words={"caption0": "a \0 'é' 红\n", "caption1": "b"}, images={"image0": "0" * 64, "image1": "1" * 64},
        content="c", sources=(Source("a.mp4", 7, "2" * 64), Source("b.mp4", 8, "3" * 64)),
    ),
    Row(
        kind=PAIR, key="x-b", group="g", split="test", verdict=REJECTED, filter="faces", reason="face", score=0.5,
        detail="one", words={"caption0": "", "caption1": ""},
    ),
]  # fmt: skip


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    write_rows(ROWS, tmp_path / "rows")
    with (tmp_path / "rows").open("rb") as stream:
        assert read_rows(stream) == ROWS
    assert pq.read_schema(tmp_path / "rows").names == schema_of(PAIR).names


def test_rows_have_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_rows(ROWS, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_columns_of_no_kind_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["a"]}), tmp_path / "rows")
    with (tmp_path / "rows").open("rb") as stream, pytest.raises(ValueError, match="columns key are of no kind"):
        read_rows(stream)


def candidate(number: int) -> Candidate:
    return Candidate(key=f"t-{number}", identity=f"[{number}]", group=f"g{number}", split="train")


def test_rows_of_a_table_are_several_a_candidate_or_one_that_says_why_not(tmp_path: Path) -> None:
    made = [
        (candidate(0), TableRows("t-0", [{"word": "a", "length": 1}, {"word": "bc", "length": None}])),
        (candidate(1), Rejected("t-1", "no-words", "empty")),
        (candidate(2), TableRows("t-2", [{"length": 3}])),
    ]
    write_table_rows(made, COLUMNS, tmp_path / "rows")
    table = pq.read_table(tmp_path / "rows")
    assert table.schema.names == [*JUDGED.names, "word", "length"]
    rows = table.to_pylist()
    assert [(row["key"], row["verdict"], row["word"], row["length"]) for row in rows] == [
        ("t-0", KEPT, "a", 1),
        ("t-0", KEPT, "bc", None),
        ("t-1", REJECTED, None, None),
        ("t-2", KEPT, None, 3),
    ]
    assert (rows[2]["filter"], rows[2]["reason"], rows[2]["detail"]) == ("generator", "no-words", "empty")
    assert {row["split"] for row in rows} == {"train"} and rows[1]["identity"] == "[0]"
    write_table_rows(made, COLUMNS, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "rows").read_bytes()


def test_a_candidate_without_rows_and_a_column_that_is_taken_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="t-0: a candidate of a table gave no row; its generator must reject it"):
        write_table_rows([(candidate(0), TableRows("t-0", []))], COLUMNS, tmp_path / "rows")
    with pytest.raises(ValueError, match="a table has a column 'key' of its own"):
        table_schema(pa.schema([("key", pa.string())]))
