"""`pytest --third`: every slow test has its day."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import third_of


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(0, 10**6))
def test_all_files_run_within_any_three_days_and_a_day_has_a_third(
    numbers: set[int], limited: set[int], first: int
) -> None:
    files = [Path(f"test_{number}.py") for number in sorted(numbers)]
    long = {Path(f"test_{number}.py") for number in limited & numbers}
    days = [third_of(files, long, day) for day in range(first, first + 3)]
    assert sorted(path for day in days for path in day) == sorted(files)
    for of_day in (days, [[path for path in day if path in long] for day in days]):
        sizes = [len(day) for day in of_day]
        assert max(sizes) - min(sizes) <= 1
    assert all(day == sorted(day, key=lambda path: path not in long) for day in days)
