"""Statements that are true or false: margins, accuracy and the report, of models that have a threshold."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL.Image import Image

from extras.tests.benchmarks.made_layouts import vsr
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.features.pairs import ByPairs
from twinset.evaluation.features.score_table import write_scores
from twinset.evaluation.features.store import FeatureStore
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.report.page import write_report
from twinset.evaluation.run import run
from twinset.models.encoders.contract import Floats, Matcher, NotApplicable


class SaysYes(Matcher):
    """P(yes) is 0.9 whatever is shown."""

    name, threshold = "says-yes", 0.5

    def digest(self) -> str:
        return "says-yes"

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        return np.full(len(texts), 0.9, np.float32)


def test_who_says_yes_to_all_is_right_where_the_statement_is_true(tmp_path: Path) -> None:
    vsr(tmp_path)
    benchmark = open_benchmark("vsr", tmp_path)
    answers = ByPairs(SaysYes(), FeatureStore(tmp_path / "cache", "says-yes"), 2)
    path = tmp_path / "out" / "scores" / "vsr" / "says-yes.parquet"
    path.parent.mkdir(parents=True)
    about = {"benchmark": "vsr", "title": "VSR", "model": "says-yes", "model_digest": "0", "threshold": 0.5}
    assert write_scores(benchmark, answers, path, about) == 2
    answers.close()
    rows = pq.read_table(path).select(["key", "margin", "correct"]).to_pylist()
    assert [row["correct"] for row in rows] == [False, True]
    assert [row["margin"] for row in rows] == pytest.approx([-0.4, 0.4])
    assert measure(path, resamples=0).all.figures["accuracy"].value == 50
    page = write_report(tmp_path / "out", {"vsr": benchmark})[0].read_text()
    assert "accuracy" in page and "on the wrong side of the threshold" in page and "(not true)" in page


def test_a_model_without_a_threshold_is_told_so(tmp_path: Path) -> None:
    vsr(tmp_path)
    model = "random:ViT-S-32-alt"  # the smallest that open_clip knows by name
    with pytest.raises(NotApplicable, match=r"no score above which a text is true of an image.*blip-itm:FOLDER"):
        run([open_benchmark("vsr", tmp_path)], [model], tmp_path / "out", tmp_path / "cache")
