"""Which distributions the page draws."""

from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.report.made_scores import SCHEMAS, identity, matchings, save
from twinset.evaluation.report.distributions import (
    MOST_SUBSETS,
    calibration_panels,
    equivariance_panels,
    largest_subsets,
)
from twinset.evaluation.report.model_answers import score_files
from twinset.evaluation.report.page import write_report


@pytest.mark.slow
def test_of_many_subsets_the_largest_are_drawn_and_all_are_in_the_tables(tmp_path: Path) -> None:
    subsets = [f"part {number:02d}" for number in range(30)]
    save(tmp_path, "made", "one", matchings(30 * 4 + 7, 3, 0.1, subsets[::-1]), SCHEMAS["matching"])
    shown, count = largest_subsets(score_files(tmp_path))
    # The last seven have one row more; the others are as large as each other.
    assert (shown, count) == ({*subsets[-7:], *subsets[: MOST_SUBSETS - 7]}, 30)
    panels = equivariance_panels(score_files(tmp_path), shown)
    assert {panel.title.partition(":")[0] for panel in panels} == shown
    write_report(tmp_path, {}, resamples=50)
    page = (tmp_path / "report.html").read_text()
    assert "Equivariance scores of the 24 largest of 30 subsets" in page
    assert all(subset in page for subset in subsets)


def test_calibration_is_of_probabilities_alone(tmp_path: Path) -> None:
    """By hand: of pairs at .95 half match, and of those at .15 too: errors are .45 and .35."""
    rows = [{**identity(0), "s00": 0.95, "s01": 0.95, "s10": None, "s11": None}]
    rows += [{**identity(1), "s00": 0.15, "s01": 0.15, "s10": None, "s11": None}]
    save(tmp_path, "pairs", "m", rows, SCHEMAS["matching"], threshold=0.5)
    (panel,) = calibration_panels(score_files(tmp_path))
    assert panel.title == "m: error 40.0 %" and panel.y["share that match"][[1, 9]].tolist() == [0.5, 0.5]
    assert np.isnan(panel.y["share that match"][[0, 5]]).all()
    other = tmp_path / "other"
    save(other, "pairs", "cosines", rows, SCHEMAS["matching"])
    save(other, "pairs", "log-odds", [{**rows[0], "s00": 3.0}], SCHEMAS["matching"], threshold=0.0)
    assert calibration_panels(score_files(other)) == []


def test_equivariance_is_also_shown_as_the_scores_have_it(tmp_path: Path) -> None:
    save(tmp_path, "pairs", "m", matchings(30, 0, 0.1), SCHEMAS["matching"])
    divided, raw = (equivariance_panels(score_files(tmp_path), {"first"}, one) for one in (False, True))
    assert [one.title for one in divided] == [one.title for one in raw] and {one.axis for one in raw} == {
        "equivariance score"
    }
    scale = divided[0].x / raw[0].x
    assert np.allclose(scale, scale[0]) and scale[0] > 1
