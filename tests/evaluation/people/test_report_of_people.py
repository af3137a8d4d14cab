"""A report with people beside a model."""

from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.report.made_scores import identity, matchings, save
from twinset.evaluation.examples import MATCHING_OUTCOMES, MATCHING_SCORES
from twinset.evaluation.people import OUTCOMES
from twinset.evaluation.report.page import write_report


@pytest.mark.slow  # it draws
def test_the_page_shows_people_and_draws_models_alone(tmp_path: Path) -> None:
    right = np.random.default_rng(0).random((30, 4)) < 0.9
    rows = [{**identity(n), **dict(zip(OUTCOMES, map(bool, row), strict=True))} for n, row in enumerate(right)]
    save(tmp_path, "made", "people", rows, MATCHING_OUTCOMES)
    alone = write_report(tmp_path, resamples=50)
    assert b"<figure" not in alone[0].read_bytes()
    save(tmp_path, "made", "clip", matchings(60, 1, 0.1), MATCHING_SCORES)
    both = write_report(tmp_path, resamples=50)
    page = both[0].read_text()
    assert "<figure" in page and "Worst mistakes of clip" in page and "Worst mistakes of people" not in page
    lines = (tmp_path / "tables/made-all.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:4]] == ["clip", "people", "chance"]
