"""Calibration, also on the released answers (Cho et al. 2023)."""

from pathlib import Path

import numpy as np
import pytest

from studies.calibration import at_threshold, calibrate
from twinset.contracts.errors import WrongUse
from twinset.evaluation.ratings.released import DSG_RATINGS, read_dsg_ratings, read_dsg_scores

DSG = Path(__file__).parents[2] / "../shared/data/dsg"


def test_released_answers_have_the_documented_threshold() -> None:
    if not DSG.is_dir():
        pytest.skip("the released answers are not in ../shared/data/dsg on this machine")
    ratings = read_dsg_ratings(DSG / DSG_RATINGS)
    scores = {key: one for key, one in read_dsg_scores(DSG / "pali17b_dsg.csv").items() if key in ratings}
    given, means = np.array([*scores.values()]), np.array([ratings[key].mean for key in scores])
    effect = at_threshold(given, means >= 4.5, 0.75)
    assert (len(scores), round(effect.rejected, 3), round(effect.good_kept, 3)) == (795, 0.269, 0.975)
    # Calibrated to keep as many, the threshold is at least that one, and rejects no fewer of the bad.
    chosen = calibrate(given, means >= 4.5, 0.975)
    assert chosen.threshold >= 0.75 and chosen.good_kept >= 0.975 and chosen.bad_rejected >= effect.bad_rejected


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
