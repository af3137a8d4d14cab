"""Grounding of boundaries at EqBen's eight thresholds."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.contracts.errors import WrongUse
from twinset.evaluation.examples import GROUNDING_ERRORS
from twinset.evaluation.metrics.measure import measure
from twinset.evaluation.metrics.score_kinds import THRESHOLDS

ERRORS = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.9, 2.0, 2.75, 8.0]), min_size=1, max_size=4)


def table(errors: Any) -> pa.Table:
    return pa.table({"errors": pa.array(errors, pa.list_(pa.float32()))})


@given(st.lists(ERRORS, min_size=1, max_size=20))
def test_grounding_equals_a_loop_over_gaps(errors: list[list[float]]) -> None:
    found = measure(table(errors), resamples=0).all
    within = {seconds: [[error <= seconds for error in row] for row in errors] for seconds in THRESHOLDS}
    for seconds, rows in within.items():
        figure = found.figures[f"grounding@{seconds}"]
        assert figure.value == pytest.approx(100 * np.mean([all(row) for row in rows]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(row) for row in rows]))
    values = [found.figures[f"grounding@{seconds}"].value for seconds in THRESHOLDS]
    assert found.figures["grounding"].value == pytest.approx(np.mean(values))
    tied = [any(any(rows[place]) and not all(rows[place]) for rows in within.values()) for place in range(len(errors))]
    assert found.ties == pytest.approx(100 * np.mean(tied))


def test_our_own_table_has_all_it_needs() -> None:
    rows = [{"key": f"k{n}", "subset": "gebc", "category": "", "group": f"v{n // 2}", "errors": [n]} for n in range(6)]
    found = measure(pa.Table.from_pylist(rows, GROUNDING_ERRORS), ["subset"])
    assert (found.all.n, found.all.groups) == (6, 3)
    assert [figure.value for figure in found.all.figures.values()][-4:] == pytest.approx([200 / 6, 50, 50, 400 / 6])
    assert found.by["gebc"].figures["grounding@3.0"].low is not None


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([[1.0], []], "row 2, column errors is empty"),
        ([[1.0], None], "row 2, column errors is empty"),
        ([[1.0], [0.5], [2.0, -1.0]], "row 3, column errors has -1.0"),
        ([[1.0], [float("nan"), 1.0]], "row 2, column errors has nan"),
        ([[1.0], [None]], "row 2, column errors has nan"),
    ],
)
def test_errors_that_are_no_seconds(errors: Any, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        measure(table(errors))


def test_errors_that_are_no_lists() -> None:
    with pytest.raises(WrongUse, match="column errors is double; write lists"):
        measure(pa.table({"errors": [1.0]}))
