"""Rows of integers are counted as a dictionary would, in the narrowest type and an order of their own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.evaluation.metrics.ways import Ways

NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-200, 200), st.integers(-(2**40), 2**40))
BATCHES = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=12), max_size=8)


@given(BATCHES)
def test_rows_are_counted_in_the_order_of_their_bytes(batches: list[list[tuple[int, int, int]]]) -> None:
    ways, twice = Ways(3), Ways(3)
    for batch in batches:
        rows = np.array(batch, np.int64).reshape(-1, 3)
        ways.add(rows)
        twice.add(rows[::-1], np.full(len(rows), 2))
    wanted = Counter(row for batch in batches for row in batch)
    rows, counts = ways.counted()
    assert {tuple(row): n for row, n in zip(rows.tolist(), counts.tolist(), strict=True)} == wanted
    wide = [row.tobytes() for row in rows.astype("<i8")]
    assert wide == sorted(wide) and len({*wide}) == len(wide)
    np.testing.assert_array_equal(twice.counted()[0], rows)
    np.testing.assert_array_equal(twice.counted()[1], 2 * counts)


def test_small_numbers_take_a_byte_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.evaluation.metrics.ways._WAITING", 10)  # merged often
    ways, rng = Ways(4), np.random.default_rng(0)
    for _ in range(30):
        ways.add(rng.integers(0, 3, (20, 4)))
    rows, counts = ways.counted()
    assert (rows.dtype.name, rows.shape, int(counts.sum())) == ("int8", (81, 4), 600)
    ways.add(np.array([[300, 0, 0, 0]]))
    assert ways.counted()[0].dtype.name == "int16" and int(ways.counted()[1].sum()) == 601
