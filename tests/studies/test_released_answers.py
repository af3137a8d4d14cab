"""Calibration, and the released answers (Cho et al. 2023)."""

from pathlib import Path

import numpy as np
import pytest

from studies.calibration import at_threshold, calibrate
from studies.question_quality import spearman
from studies.released_answers import both, parents_of, read_ratings, read_scores
from twinset.manifests.errors import WrongUse

DSG = Path(__file__).parents[2] / "../shared/data/dsg"
HEADER = "t2i_model,item_id,question_id,dependency_id,answer\n"


def test_released_answers_agree_with_people_as_published() -> None:
    if not DSG.is_dir():
        pytest.skip("the released answers are not in ../shared/data/dsg on this machine")
    ratings = read_ratings(DSG / "tifa160-likert-anns.csv")
    found = {name: both(read_scores(DSG / f"{name}_dsg.csv"), ratings) for name in ("pali17b", "mplug", "instructblip")}
    assert len(ratings) == 800 and {len(given) for given, _ in found.values()} == {795}
    assert {name: round(spearman(*values), 3) for name, values in found.items()} == {
        "pali17b": 0.566,
        "mplug": 0.457,
        "instructblip": 0.435,
    }
    given, means = found["pali17b"]
    effect = at_threshold(given, means >= 4.5, 0.75)
    assert (round(effect.rejected, 3), round(effect.good_kept, 3)) == (0.269, 0.975)
    # Calibrated to keep as many, the threshold is at least that one, and rejects no fewer of the bad.
    chosen = calibrate(given, means >= 4.5, 0.975)
    assert chosen.threshold >= 0.75 and chosen.good_kept >= 0.975 and chosen.bad_rejected >= effect.bad_rejected


def test_dirty_lists_of_parents() -> None:
    assert [parents_of(text) for text in ("0", "1,2", "1, outside", "1,2, 4", "")] == [(), (1, 2), (1,), (1, 2, 4), ()]


def test_only_yes_is_a_yes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + 'm,i,1,0,Yes\nm,i,2,"1,7",yes 1000\nm,i,3,1, yes\nm,j,1,0,"no\nbus"\n')
    assert read_scores(tmp_path / "a.csv") == {("m", "i"): pytest.approx(2 / 3), ("m", "j"): 0.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [("a,b\n1,2\n", "not a file with columns"), (HEADER + "m,i,one,0,yes\n", "question_id is not a number")],
)
def test_other_files_are_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(WrongUse, match=rf"a\.csv: {message}.*fetch"):
        read_scores(tmp_path / "a.csv")


@pytest.mark.parametrize("keep", [0.01, 0.5, 0.8, 0.95, 1.0])
def test_the_threshold_is_the_best_of_all(keep: float) -> None:
    draw = np.random.default_rng(5)
    good = draw.random(300) < 0.6
    given = np.round(np.clip(draw.normal(0.5 + 0.3 * good, 0.25), 0, 1), 1)  # many are equal
    chosen = calibrate(given, good, keep)
    allowed = [effect for value in np.unique(given) if (effect := at_threshold(given, good, value)).good_kept >= keep]
    assert chosen.good_kept >= keep
    assert chosen.bad_rejected == max(effect.bad_rejected for effect in allowed)


@pytest.mark.parametrize(
    ("given", "good", "keep", "message"),
    [
        ([0.5], [True, False], 0.9, "one decision for each score"),
        ([0.5], [False], 0.9, "no image was judged good"),
        ([float("nan")], [True], 0.9, "a score is NaN"),
        ([0.5], [True], 0.0, "a share above 0"),
    ],
)
def test_what_cannot_be_calibrated(given: list[float], good: list[bool], keep: float, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        calibrate(np.array(given), np.array(good), keep)
