"""Score files as people write them, and what is wrong with bad ones."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.figures import Results
from twinset.evaluation.metrics.measure import measure

HEADER = "caption,type,s00,s01,s10,s11\n"
GOOD = HEADER + '"A dog,\nasleep.",add,0.5,0.25,0.125,1\ncat,swap, 0.5 ,0.75,-1e-3,1\n'


def written(folder: Path, content: str | bytes, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def values(results: Results) -> dict[str, float]:
    return {name: figure.value for name, figure in results.all.figures.items()}


def test_csv_parquet_and_tables_say_the_same(tmp_path: Path) -> None:
    csv = written(tmp_path, GOOD)
    scores = {"s00": pa.array([0.5, 0.5], pa.float32()), "s01": [0.25, 0.75], "s10": [0.125, -1e-3]}
    whole, kinds = pa.array([1, 1], pa.int16()), pa.array(["add", "swap"]).dictionary_encode()
    table = pa.table({**scores, "s11": whole, "type": kinds})
    pq.write_table(table, tmp_path / "scores.any")
    wanted = measure(csv, ["type"])
    assert (wanted.all.n, values(wanted)["text"], wanted.by["add"].figures["group"].value) == (2, 50, 100)
    assert wanted == measure(table, ["type"]) == measure(tmp_path / "scores.any", ["type"])
    tabs = written(tmp_path, GOOD.replace("dog,", "dog").replace(",", "\t"), "scores.tsv")
    assert measure(str(tabs), ["type"]) == wanted


def test_a_byte_order_mark_windows_line_ends_and_odd_booleans(tmp_path: Path) -> None:
    text = "correct,type\r\nTRUE,ä\r\n 0 ,ä\r\nyes,b\r\n1.0,b\r\nT,b\r\nno,b\r\n"
    results = measure(written(tmp_path, text.encode("utf-8-sig")), ["type"])
    assert values(results) == {"accuracy": pytest.approx(400 / 6)} and [*results.by] == ["b", "ä"]


FILES: dict[str, tuple[str | bytes, str]] = {
    "other columns": ("a,b\n1,2\n", "no scores in its columns: a, b"),
    "nan": (HEADER + "a,b,1,2,nan,4\n", "row 1, column s10 is nan"),
    "no score": (HEADER + "a,b,1,,3,4\n", "row 1, column s01 has no number"),
    "half a pair": (HEADER + "a,b,1,2,,\na,b,1,2,3,\n", "row 2, columns s10 and s11"),
    "twice": ("correct,correct\n1,1\n", "several columns 'correct'"),
    "latin": ("correct,type\n1,\xe4\n".encode("latin-1"), "UTF-8"),
}


@pytest.mark.parametrize("what", FILES)
def test_bad_files(tmp_path: Path, what: str) -> None:
    content, message = FILES[what]
    with pytest.raises(WrongUse, match=f"scores.csv.*{message}"):
        measure(written(tmp_path, content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s01": ["0.5", "high"]}, "row 2, column s01 is 'high'"),
        ({"s01": [True, False]}, "column s01 is bool"),
        ({"type": ["a", None]}, "row 2, column type is empty"),
        ({"type": ["x", "x / y"], "g": ["y / z", "z"]}, "--by type,g: values with ' / '"),
    ],
)
def test_bad_columns(change: dict[str, Any], message: str) -> None:
    table = pa.table({"s00": [1.0, 2.0], "s01": [0.0, 0.0], "type": ["a", "b"], "g": ["a", "b"]} | change)
    with pytest.raises(WrongUse, match=message):
        measure(table, ["type", "g"], group="g")


def test_bad_metadata() -> None:
    table = pa.table({"s00": [1.0], "s01": [0.0]})
    for text in ("no JSON", '{"threshold": "high"}', "[" * 200_000):
        with pytest.raises(WrongUse, match="metadata"):
            measure(table.replace_schema_metadata({"twinset": text}))


def test_duplicate_keys_are_named_by_row(tmp_path: Path) -> None:
    path = written(tmp_path, "key,correct\na,1\nb,1\na,0\n")
    for read in (measure, lambda file: compare(file, file)):
        with pytest.raises(WrongUse, match=r"scores\.csv: rows 1 and 3 have the same key, 'a'"):
            read(path)
    assert measure(written(tmp_path, "image,correct\na,1\nb,1\na,0\n")).all.n == 3
