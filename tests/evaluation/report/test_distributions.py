"""Which distributions the page draws."""

from pathlib import Path

from tests.evaluation.report.made_scores import SCHEMAS, matchings, save
from twinset.evaluation.report.distributions import MOST_SUBSETS, equivariance_panels, largest_subsets
from twinset.evaluation.report.model_answers import score_files
from twinset.evaluation.report.page import write_report


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
