"""A table of scores of one's own, a row an example, put into a run."""

from pathlib import Path

import pandas as pd
import pytest

from tests.evaluation.benchmarks.made_layouts import flickr30k, winoground
from tests.evaluation.scorers.tiny_models import open_clip_config
from twinset.evaluation.from_python import evaluate, put_scores
from twinset.manifests.errors import WrongUse


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
    without_keys = put(tmp_path, run_table.drop(columns="key"))
    pd.testing.assert_frame_equal(pd.read_parquet(str(without_keys["path"])), run_table)


def test_examples_without_a_row_are_counted_and_strange_rows_refused(tmp_path: Path, run_table: pd.DataFrame) -> None:
    assert put(tmp_path, run_table[1:])["left_out"] == {"no row": 1}
    with pytest.raises(WrongUse, match=r"1 keys are not of winoground, the first 'strange'"):
        put(tmp_path, run_table.assign(key=["strange", *run_table.key[1:]]))
    with pytest.raises(WrongUse, match=r"row 3 has the key .* of row 1"):
        put(tmp_path, run_table.assign(key=[*run_table.key[:2], run_table.key[0]]))
    with pytest.raises(WrongUse, match=r"2 rows without keys, and winoground asks 3"):
        put(tmp_path, run_table.drop(columns="key")[1:])
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
