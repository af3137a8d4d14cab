"""Recall@K against galleries that are really sorted."""

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.contracts.errors import WrongUse
from twinset.evaluation.metrics.measure import measure

GALLERY = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=5)


def ranks(galleries: list[list[float]], targets: int = 1) -> pa.Table:
    """The table of galleries whose first entries are the targets; as many as there are in a small one."""
    rows = []
    for gallery in galleries:
        best, wrong = max(gallery[:targets]), gallery[targets:]
        rows.append(
            {
                "higher": sum(score > best for score in wrong),
                "tied": sum(score == best for score in wrong),
                "entries": len(gallery),
                "targets": len(gallery[:targets]),
                "tied_targets": gallery[:targets].count(best),
            }
        )
    return pa.Table.from_pylist(rows)


def found_at(gallery: list[float], k: int, noise: tuple[int, ...], targets: int) -> bool:
    """Whether a target is among the first K when equal scores are in the order of their noise."""
    order = sorted(range(len(gallery)), key=lambda entry: (-gallery[entry], noise[entry]))
    return any(entry < targets for entry in order[:k])


@given(st.lists(GALLERY, min_size=1, max_size=6), st.integers(1, 3))
def test_recall_equals_sorting_every_gallery(galleries: list[list[float]], targets: int) -> None:
    found = measure(ranks(galleries, targets), resamples=0).all
    assert [*found.figures] == ["recall@1", "recall@2", "recall@3"]
    orders = [[*permutations(range(len(gallery)))] for gallery in galleries]
    tied = set()
    for k in (1, 2, 3):
        each = [
            [found_at(gallery, k, noise, targets) for noise in noises]
            for gallery, noises in zip(galleries, orders, strict=True)
        ]
        figure = found.figures[f"recall@{k}"]
        assert figure.value == pytest.approx(100 * np.mean([all(answers) for answers in each]))
        assert figure.expected == pytest.approx(100 * np.mean([np.mean(answers) for answers in each]))
        tied |= {place for place, answers in enumerate(each) if any(answers) and not all(answers)}
    assert found.ties == pytest.approx(100 * len(tied) / len(galleries))


def test_a_constant_scorer_finds_nothing_in_genecis_and_one_in_15_by_chance() -> None:
    figures = measure(ranks([[0.5] * 15] * 20)).all.figures
    assert [(one.value, one.expected) for one in figures.values()] == [
        (0, pytest.approx(100 / 15)),
        (0, pytest.approx(200 / 15)),
        (0, pytest.approx(300 / 15)),
    ]


def test_a_table_that_does_not_count_tied_targets_has_one() -> None:
    table = ranks([[1.0, 1.0, 1.0]], 2)
    expected = [measure(one).all.figures["recall@1"].expected for one in (table, table.drop_columns("tied_targets"))]
    assert expected == [pytest.approx(200 / 3), pytest.approx(50)]


def test_large_galleries_have_the_ks_of_retrieval() -> None:
    table = pa.table({"higher": [0, 7], "tied": [0, 0], "entries": [1000, 15], "targets": [5, 1], "at": ["big", "15"]})
    found = measure(table, ["at"])
    recall = {name: figure.value for name, figure in found.all.figures.items()}
    assert recall == {"recall@1": 50, "recall@5": 50, "recall@10": 100, "recall@50": 100}
    assert [*found.by["15"].figures] == ["recall@1", "recall@2", "recall@3"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": [1, 0]}, "row 2, column targets: 0; a query has one target"),
        ({"entries": [15, 3]}, "row 2, column entries: fewer than higher, tied and targets"),
        ({"higher": [0, -1]}, "row 2, column higher is -1. Write a count"),
        ({"tied_targets": [1, 2]}, "row 2, column tied_targets: not 1 to targets"),
        ({"tied": [0.5, 0]}, "row 1, column tied is 0.5. Write a count"),
    ],
)
def test_ranks_that_no_gallery_gives(change: dict[str, Any], message: str) -> None:
    table = pa.table({"higher": [0, 2], "tied": [0, 1], "entries": [15, 15], "targets": [1, 1]} | change)
    with pytest.raises(WrongUse, match=message):
        measure(table)
