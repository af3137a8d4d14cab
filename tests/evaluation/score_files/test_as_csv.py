"""Scores as CSV: read again, they give the same figures to the last bit.

Values that differ have digests that differ, whatever lies beside them.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinset.cli.main import main
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.score_files.batch import Batch
from twinset.evaluation.score_files.opening import digests, write_csv


def test_a_file_of_scores_gives_the_same_figures_as_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    columns = {f"s{n // 2}{n % 2}": drawn[:, n] for n in range(4)}
    words = {"key": [f"k-{n}" for n in range(500)], "category": ['a "b", c\nd', ""] * 250}
    whole, one = tmp_path / "whole.parquet", tmp_path / "one.parquet"
    pq.write_table(pa.table(words | columns), whole)
    pq.write_table(pa.table(columns | {name: pa.nulls(500, pa.float32()) for name in ("s10", "s11")}), one)
    for path in (whole, one):
        assert main(["eval", "scores", str(path), "--scores", str(path.with_suffix(".csv")), "--json"]) == 0
        assert measure(path.with_suffix(".csv")).as_json() == measure(path).as_json()
    assert measure(whole.with_suffix(".csv"), ["category"]).as_json() == measure(whole, ["category"]).as_json()
    assert (tmp_path / "whole.csv").read_text().startswith('"key","category","s00"')


def test_lists_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    pq.write_table(pa.table({"errors": [[0.1, 0.2], [0.3]]}), tmp_path / "gaps.parquet")
    with pytest.raises(WrongUse, match="column errors holds lists"):
        write_csv(tmp_path / "gaps.parquet", tmp_path / "gaps.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["gaps.parquet"]


def test_digests_tell_values_apart() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "ä", *("x" * n for n in (7, 8, 9, 255, 256, 257, 3000)), "x" * 2999 + "y"]
    texts += [f"{kind}{row}" for kind in ("", "video-", "a long name of a video, ") for row in range(50_000)]
    found = digests(Batch("here", 1, {"group": pa.array(texts)}), ["group"])
    assert len({*found.tolist()}) == len(texts)
    sliced = Batch("here", 1, {"group": pa.array(texts).slice(3, 11)})
    np.testing.assert_array_equal(digests(sliced, ["group"]), found[3:14])
