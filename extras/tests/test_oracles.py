"""Counts and figures that others published, reached by the commands that users call."""

import pytest

from tests.guard.test_oracles import at_hand, printed


@pytest.mark.parametrize(
    ("name", "folder", "metrics", "within"), [("tifa", "benchmarks/tifa", 10, 0.00051), ("dsg", "dsg", 3, 0.001)]
)
def test_agreement_of_metrics_with_people(
    name: str, folder: str, metrics: int, within: float, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = printed(capsys, "eval", "agreement", f"{name}={at_hand(folder)}", "--resamples", "0")["checks"]
    published = {metric: one["published"] for metric, one in checks.items() if one["published"]}
    assert len(published) == metrics
    for metric, figures in published.items():
        assert checks[metric]["n"] == 800
        assert {figure: checks[metric][figure] for figure in figures} == pytest.approx(figures, abs=within)
