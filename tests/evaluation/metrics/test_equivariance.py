"""EqBen's equivariance score."""

import numpy as np
import pyarrow as pa
import pytest

from twinset.evaluation.metrics.matching import SCORES
from twinset.evaluation.metrics.measure import measure


def table(n: int = 500) -> pa.Table:
    scores = np.random.default_rng(0).normal(size=(4, n))
    return pa.table(dict(zip(SCORES, scores, strict=True)) | {"subset": ["a", "b"] * (n // 2)})


def test_the_mean_equals_a_loop() -> None:
    scores = table()
    rows = [tuple(row[name] for name in SCORES) for row in scores.to_pylist()]
    text = np.array([(s00 - s01) - (s11 - s10) for s00, s01, s10, s11 in rows])
    image = np.array([(s00 - s10) - (s11 - s01) for s00, s01, s10, s11 in rows])
    figures = measure(scores).all.figures
    for name, values in (("text", text), ("image", image)):
        figure = figures[f"mean_equivariance_{name}"]
        assert figure.value == pytest.approx(np.abs(values).mean())
        error = np.abs(values).std(ddof=1) / 500**0.5
        assert (figure.low, figure.high) == pytest.approx(
            (figure.value - 1.96 * error, figure.value + 1.96 * error), 1e-3
        )
        grouped = measure(scores.append_column("group", [[str(n) for n in range(500)]])).all.figures
        assert grouped[f"mean_equivariance_{name}"].low == pytest.approx(figure.low, rel=1e-5)


def test_an_interval_of_a_mean_that_cannot_be_negative_begins_at_0_or_above() -> None:
    scores = pa.table({"s00": [0.5, 0.5, 5.0], "s01": [0.0] * 3, "s10": [0.0] * 3, "s11": [0.5, 0.5, 0.5]})
    figure = measure(scores).all.figures["mean_equivariance_text"]
    assert figure.value == 1.5 and figure.low == 0


def test_an_equivariant_model_has_0_everywhere() -> None:
    exact = pa.table({"s00": [0.5, 0.75], "s01": [0.25, 0.5], "s10": [0.25, 0.5], "s11": [0.5, 0.75]})
    assert measure(exact).all.figures["mean_equivariance_text"].value == 0


def test_one_image_has_no_equivariance() -> None:
    one = pa.table({"s00": [1.0], "s01": [0.0], "s10": pa.nulls(1, pa.float32()), "s11": pa.nulls(1, pa.float32())})
    assert "mean_equivariance_text" not in measure(one).all.figures
