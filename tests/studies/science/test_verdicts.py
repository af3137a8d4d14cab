from functools import partial
from pathlib import Path

import numpy as np
import pytest

from studies.science.outcomes import Right, paired, percent, read_right
from studies.science.verdicts import decide, judge, of_all, overall
from tests.studies.science.made_scores import CATEGORIES, small_design, write_matchings, write_queries
from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure

#: Chances of the made arms to be right.
MADE = {"ft": 0.4, "hardneg": 0.45, "eqsim": 0.9, "negative-images": 0.95, "negative-texts": 0.3, "none": 0.2}
FIGURES = ("text", "image", "group", "ipos2t")


def read(folder: Path, arm: str, seed: int, test: str) -> Right:
    path = folder / f"{arm}-{seed}-{test}.parquet"
    if not path.exists():
        write_matchings(path, np.random.default_rng([seed, len(arm)]), MADE.get(arm, 0.5))
    return read_right(path, FIGURES)


@pytest.mark.parametrize(
    ("difference", "low", "high", "verdict"),
    [
        (2.0, 0.1, 4, "supported"),
        (1.9, 0.1, 4, "undecided"),
        (5, 0, 9, "undecided"),
        (-3, -5, -0.1, "refuted"),
        (-0.2, -0.3, -0.1, "refuted"),
        (-3, -5, 0, "undecided"),
    ],
)
def test_a_verdict_needs_an_interval_and_a_size(difference: float, low: float, high: float, verdict: str) -> None:
    assert decide(difference, low, high, 2.0) == verdict


def test_a_claim_states_all_of_its_comparisons() -> None:
    assert of_all(["supported", "supported"]) == "supported"
    assert of_all(["supported", "undecided"]) == "undecided"
    assert of_all(["supported", "undecided", "not tested", "refuted"]) == "refuted"
    assert of_all(["supported", "undecided", "not tested"]) == "not tested"


def test_outcomes_are_those_of_the_metrics(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    write_matchings(path, np.random.default_rng(0), 0.6)
    right, expected = read_right(path, FIGURES), measure(path, ["category"], resamples=0).as_json()
    for figure in FIGURES:
        assert percent(right, figure) == pytest.approx(expected["all"][figure])
    found = percent(right, "group", [CATEGORIES[0]])
    assert found == pytest.approx(expected["by"][CATEGORIES[0]]["group"])
    write_queries(path, np.random.default_rng(0), 0.6)
    value = measure(path, resamples=0).as_json()["all"]["recall@1"]
    assert percent(read_right(path, ["recall@1"]), "recall@1") == pytest.approx(value)
    with pytest.raises(WrongUse, match="no figure 'group'"):
        read_right(path, ["group"])


def test_pairs_of_arms_must_have_the_same_rows(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 0), ("c", 1)):
        write_matchings(tmp_path / name, np.random.default_rng(len(name)), 0.5, first=first)
    a, b, c = (read_right(tmp_path / name, ["group"]) for name in "abc")
    added, rows = paired([a], [b], "group")
    assert added.shape == (1, 40) and rows.tolist() == [2] * 40
    assert added.sum() == a.flags["group"].sum() - b.flags["group"].sum()
    with pytest.raises(WrongUse, match="has other rows than"):
        paired([a], [c], "group")


def test_claims_are_decided_from_score_files(tmp_path: Path) -> None:
    design = small_design()
    small = {("A4", "v2-close", "v2-all"), ("A1", "eqsim", "ft")}
    judged = judge(design, partial(read, tmp_path), ["in-world", "held-out"], design.arms, small)
    verdicts = overall(design, judged, "in-world")
    assert verdicts["B5"] == "undecided" or verdicts["B5"] == "supported"
    found = {(one.claim, one.better, one.than): one for one in judged["in-world"]}
    strong = found["A1", "eqsim", "ft"]
    assert strong.verdict == "supported" and strong.low > 0 and strong.a - strong.b == pytest.approx(strong.difference)
    assert (
        found["A4", "v2-close", "v2-all"].verdict == "not tested"
        and found["A3", "hardneg", "ft"].verdict != "not tested"
    )
    assert np.mean(strong.seeds) == pytest.approx(strong.difference)
    assert strong.wide[0] < strong.low < strong.difference < strong.high < strong.wide[1]
    assert strong.p <= strong.p_holm <= 1
    assert "few seeds" in " ".join(strong.doubts) or strong.wide[0] > 0
    assert {one.claim for one in judged["in-world"]} == {name for name in design.claims if name[0] in "AB"}
