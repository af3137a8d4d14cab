"""Recall@K against galleries that are really sorted."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics.measure import measure
from manifests.errors import WrongUse

GALLERY = st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=5)


def ranks(galleries: list[list[float]]) -> pa.Table:
    """The table of galleries whose first entry is the target."""
    rows = [
        {
            "higher": sum(score > gallery[0] for score in gallery[1:]),
            "tied": sum(score == gallery[0] for score in gallery[1:]),
            "entries": len(gallery),
            "targets": 1,
        }
        for gallery in galleries
    ]
    return pa.Table.from_pylist(rows)


def found_at(gallery: list[float], k: int, noise: tuple[int, ...]) -> bool:
    """Whether the target is among the first K when equal scores are in the order of their noise."""
    order = sorted(range(len(gallery)), key=lambda entry: (-gallery[entry], noise[entry]))
    return 0 in order[:k]


@given(st.lists(GALLERY, min_size=1, max_size=6))
def test_recall_equals_sorting_every_gallery(galleries: list[list[float]]) -> None:
    found = measure(ranks(galleries), resamples=0).all
    assert [*found.figures] == ["recall@1", "recall@2", "recall@3"]
    orders = [[*permutations(range(len(gallery)))] for gallery in galleries]
    tied = set()
    for k in (1, 2, 3):
        each = [
            [found_at(gallery, k, noise) for noise in noises] for gallery, noises in zip(galleries, orders, strict=True)
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
        ({"tied": [0.5, 0]}, "row 1, column tied is 0.5. Write a count"),
    ],
)
def test_ranks_that_no_gallery_gives(change: dict[str, Any], message: str) -> None:
    table = pa.table({"higher": [0, 2], "tied": [0, 1], "entries": [15, 15], "targets": [1, 1]} | change)
    with pytest.raises(WrongUse, match=message):
        measure(table)
