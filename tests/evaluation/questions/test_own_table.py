"""A table of scores of one's own, a row an example, put into a run."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.evaluation.benchmarks.made_layouts import flickr30k, sugarcrepe, winoground
from tests.evaluation.scorers.tiny_models import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.from_python import evaluate, put_scores
from twinset.evaluation.metrics.matching import RELEASED


@pytest.fixture
def run_table(tmp_path: Path) -> pd.DataFrame:
    """What a run of ours wrote for Winoground."""
    winoground(tmp_path / "winoground")
    model = f"random:{open_clip_config(tmp_path)}"
    found = evaluate({"winoground": tmp_path / "winoground"}, model, tmp_path / "ours", cache=tmp_path / "cache")
    return pd.read_parquet(found["scores"][0]["path"])


def put(folder: Path, table: pd.DataFrame) -> dict[str, object]:
    table.to_csv(folder / "mine.csv", index=False)
    places = {"winoground": str(folder / "winoground")}
    return dict(put_scores(folder / "mine.csv", "mine", folder / "run", places, None, None)["scores"][0])


@pytest.mark.slow
def test_a_csv_becomes_the_score_file_that_a_run_writes(tmp_path: Path, run_table: pd.DataFrame) -> None:
    shuffled = run_table.sample(frac=1, random_state=1).drop(columns=["subset", "category", "group"])
    found = put(tmp_path, shuffled)
    assert (found["rows"], found["left_out"]) == (len(run_table), {})
    pd.testing.assert_frame_equal(pd.read_parquet(str(found["path"])), run_table)


def test_examples_without_a_row_are_counted_and_strange_rows_refused(tmp_path: Path, run_table: pd.DataFrame) -> None:
    assert put(tmp_path, run_table[1:])["left_out"] == {"no row": 1}
    with pytest.raises(WrongUse, match="the key 'strange' is not of winoground; remove its row"):
        put(tmp_path, run_table.assign(key=["strange", *run_table.key[1:]]))
    with pytest.raises(WrongUse, match="no column 'key'"):
        put(tmp_path, run_table.drop(columns="key"))
    with pytest.raises(WrongUse, match="no scores in its columns: key, s00"):
        put(tmp_path, run_table[["key", "s00"]])


def test_a_table_of_retrieval_has_ranks(tmp_path: Path) -> None:
    flickr30k(tmp_path / "flickr30k")
    model = f"random:{open_clip_config(tmp_path)}"
    found = evaluate({"flickr30k": tmp_path / "flickr30k"}, model, tmp_path / "ours", cache=tmp_path / "cache")
    table = pd.read_parquet(found["scores"][0]["path"])
    table.drop(columns=["best_wrong"]).to_parquet(tmp_path / "mine.parquet")
    places = {"flickr30k": str(tmp_path / "flickr30k")}
    (one,) = put_scores(tmp_path / "mine.parquet", "mine", tmp_path / "run", places, None, None)["scores"]
    assert one["figures"] == found["scores"][0]["figures"]


def put_text(folder: Path, benchmark: str, columns: str, threshold: float | None = None) -> dict[str, Any]:
    (folder / "mine.csv").write_text(columns)
    places = {benchmark: str(folder / benchmark)}
    return dict(put_scores(folder / "mine.csv", "mine", folder / "run", places, None, threshold)["scores"][0])


def test_what_is_measured_of_one_image_is_put_beside_a_benchmark_too(tmp_path: Path) -> None:
    sugarcrepe(tmp_path / "sugarcrepe")
    tables = {"s00,s01": ("1,0.5", "0,0.5"), "correct": ("True", "no"), "ipos2t": ("1", "0.5")}
    for header, (right, wrong) in tables.items():
        rows = [f"{kind}/{n},{right if n == 0 else wrong}" for kind in ("swap_obj", "add_att") for n in range(3)]
        found = put_text(tmp_path, "sugarcrepe", "\n".join([f"key,{header}", *rows]))
        assert found["rows"] == 6 and found["figures"]["accuracy"] == pytest.approx(100 / 3)


def test_released_outcomes_of_two_images_are_read_by_both_of_their_names(tmp_path: Path) -> None:
    winoground(tmp_path / "winoground")
    for names in RELEASED:
        lines = [",".join(("key", *names)), *(f"{n},1,1,0,1" for n in range(3))]
        found = put_text(tmp_path, "winoground", "\n".join(lines))
        assert (found["figures"]["text"], found["figures"]["tpos2i"]) == (100, 0)
    with pytest.raises(WrongUse, match=r"winoground needs s00, s01, s10, s11; or ipos2t, ineg2t, tpos2i, tneg2i; or"):
        put_text(tmp_path, "winoground", "key,s00,s01\n0,1,0")
