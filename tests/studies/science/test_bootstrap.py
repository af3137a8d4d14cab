import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.science.bootstrap import differences, interval, p_value, resampled_differences, wide_level
from studies.science.coverage import simulate


def exact(added: np.ndarray, rows: np.ndarray) -> dict[float, float]:
    """Every resample of seeds and of groups by enumeration, with loops: its difference and its probability."""
    seeds, groups = added.shape
    found: dict[float, float] = defaultdict(float)
    chance = seeds**-seeds * groups**-groups
    for drawn_seeds in itertools.product(range(seeds), repeat=seeds):
        for drawn_groups in itertools.product(range(groups), repeat=groups):
            above = sum(int(added[s, g]) for s in drawn_seeds for g in drawn_groups)
            below = sum(int(rows[g]) for _ in drawn_seeds for g in drawn_groups)
            found[round(100 * above / below, 9)] += chance
    return found


@settings(max_examples=10)
@given(data=st.data())
def test_resamples_are_those_of_the_slow_definition(data: st.DataObject) -> None:
    seeds, groups = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    rows = np.array(data.draw(st.lists(st.integers(1, 4), min_size=groups, max_size=groups)))
    cells = [[data.draw(st.integers(-int(n), int(n))) for n in rows] for _ in range(seeds)]
    added = np.array([cells, [[-one for one in row] for row in cells]])
    found = resampled_differences(added, rows, 20_000, data.draw(st.integers(0, 9)))
    expected = exact(added[0], rows)
    values, counts = np.unique(found[:, 0].round(9), return_counts=True)
    assert {*values.tolist()} <= {*expected}
    for value, share in zip(values.tolist(), (counts / 20_000).tolist(), strict=True):
        # Five standard errors of a share of 20,000.
        assert abs(share - expected[value]) < 5 * np.sqrt(expected[value] / 20_000)
    np.testing.assert_allclose(found[:, 0], -found[:, 1])  # comparisons share their resamples
    point = sum(row for row in added[0].sum(1)) * 100 / (seeds * rows.sum())
    np.testing.assert_allclose(differences(added, rows), [point, -point])


def test_blocks_do_not_change_the_number_of_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    added, rows = np.array([[[1, 0, -1]]]), np.array([1, 2, 3])
    monkeypatch.setattr("studies.science.bootstrap._BLOCK", 21)  # 7 resamples at a time
    found = resampled_differences(added, rows, 100, 0)
    assert found.shape == (100, 1) and np.isfinite(found).all() and len(np.unique(found)) > 3


def test_a_level_for_few_seeds_is_that_of_students_t() -> None:
    # t_{.975, 4} = 2.776, times √(5 / 4) = 3.104; Φ(3.104) = 0.99905
    assert wide_level(5) == pytest.approx(100 * (2 * 0.999045 - 1), abs=1e-3)
    assert 95 < wide_level(500) < 95.1
    values = np.linspace(0, 1, 1001)
    assert interval(values) == pytest.approx((0.025, 0.975))
    with pytest.raises(ValueError, match="two seeds"):
        wide_level(1)


def test_p_counts_the_resamples_on_the_other_side_of_zero() -> None:
    assert p_value(np.full(9999, 3.0)) == pytest.approx(2 / 10_000)
    assert p_value(np.array([-1.0, 1.0, 1.0, 1.0])) == pytest.approx(2 * 2 / 5)
    assert p_value(np.zeros(10)) == 1.0


@pytest.mark.slow
def test_coverage_of_the_intervals() -> None:
    """Plain intervals hold where examples are the larger source of chance; wide ones also where seeds are."""
    found = [simulate(5, 200, spread, 200, 2000) for spread in (0.0, 1.0, 5.0)]
    assert [one.plain >= 0.95 for one in found] == [True, True, False]
    assert all(one.wide >= 0.92 for one in found)
