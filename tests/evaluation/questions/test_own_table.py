"""A table of scores of one's own, a row an example, put into a run."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.evaluation.benchmarks.made_layouts import flickr30k, sugarcrepe, winoground
from tests.tiny_encoders import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.from_python import evaluate, put_scores


def scored(folder: Path, benchmark: str) -> dict[str, Any]:
    """A run of ours."""
    {"winoground": winoground, "flickr30k": flickr30k}[benchmark](folder / benchmark)
    model = f"random:{open_clip_config(folder)}"
    found = evaluate({benchmark: folder / benchmark}, model, folder / "ours", cache=folder / "cache")
    return dict(found["scores"][0])


def put(folder: Path, table: pd.DataFrame, benchmark: str = "winoground") -> dict[str, Any]:
    return put_text(folder, benchmark, table.to_csv(index=False))


@pytest.mark.parametrize("benchmark", ["winoground", "flickr30k"])
def test_a_csv_becomes_the_score_file_that_a_run_writes(tmp_path: Path, benchmark: str) -> None:
    ours = scored(tmp_path, benchmark)
    table = pd.read_parquet(ours["path"]).drop(columns=["top", "best_wrong"], errors="ignore")
    found = put(tmp_path, table.sample(frac=1, random_state=1).drop(columns=["subset", "category", "group"]), benchmark)
    assert (found["rows"], found["left_out"], found["figures"]) == (len(table), {}, ours["figures"])
    pd.testing.assert_frame_equal(pd.read_parquet(found["path"]), table)


def test_examples_without_a_row_are_counted_and_strange_rows_refused(tmp_path: Path) -> None:
    table = pd.read_parquet(scored(tmp_path, "winoground")["path"])
    assert put(tmp_path, table[1:])["left_out"] == {"no row": 1}
    for wrong, message in (
        (table.assign(key=["strange", *table.key[1:]]), "the key 'strange' is not of winoground; remove its row"),
        (table.drop(columns="key"), "no column 'key'"),
        (table[["key", "s00"]], "no scores in its columns: key, s00"),
    ):
        with pytest.raises(WrongUse, match=message):
            put(tmp_path, wrong)


def put_text(folder: Path, benchmark: str, columns: str, threshold: float | None = None) -> dict[str, Any]:
    (folder / "mine.csv").write_text(columns)
    places = {benchmark: str(folder / benchmark)}
    return dict(put_scores(folder / "mine.csv", "mine", folder / "run", places, None, threshold)["scores"][0])


def test_what_is_measured_of_one_image_is_put_beside_a_benchmark_too(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "sugarcrepe")
    tables = {"s00,s01": ("1000.00002,1000.00001", "0,0.5"), "correct": ("True", "no"), "ipos2t": ("1", "0.5")}
    for header, (right, wrong) in tables.items():
        rows = [f"{kind}/{n},{right if n == 0 else wrong}" for kind in ("swap_obj", "add_att") for n in range(3)]
        found = put_text(tmp_path, "sugarcrepe", "\n".join([f"key,{header}", *rows]))
        assert found["rows"] == 6 and found["figures"]["accuracy"] == pytest.approx(100 / 3)
    places = {"sugarcrepe": str(tmp_path / "sugarcrepe")}
    with pytest.raises(WrongUse, match="--model mine-: its scores on sugarcrepe and those of mine would be one file"):
        put_scores(tmp_path / "mine.csv", "mine-", tmp_path / "run", places, None, None)
