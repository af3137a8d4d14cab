"""What is read of a benchmark, and what is refused."""

import pytest

from tests.evaluation.blind_probes.made_benchmark import NONE, Made, pair
from twinset.contracts.errors import WrongUse
from twinset.evaluation.blind_probes.pairs import read_pairs
from twinset.evaluation.examples import LeftOut, Query


def test_rows_are_all_subsets_and_their_categories_in_order() -> None:
    made = Made(
        [
            pair(0, ("a", "b"), subset="swap", category="obj"),
            pair(1, ("c", "d"), subset="add", category="add"),
            LeftOut("file", "missing image"),
            pair(2, ("e", "f"), subset="swap", category="att", group="g0"),
            LeftOut("file", "missing image"),
        ]
    )
    pairs = read_pairs(made)
    assert {row: places.tolist() for row, places in pairs.rows.items()} == {
        "all": [0, 1, 2],
        "swap": [0, 2],
        "swap / obj": [0],
        "swap / att": [2],
        "add": [1],
    }
    assert pairs.captions == (["a", "c", "e"], ["b", "d", "f"])
    assert pairs.groups.tolist() == [0, 1, 0] and [places.tolist() for places in pairs.subset_places()] == [[0, 2], [1]]
    assert pairs.left_out == {"missing image": 2}


def test_an_example_without_a_group_is_one_of_its_own() -> None:
    alone = [pair(number, ("a", "b")) for number in range(3)]
    for one in alone:
        object.__setattr__(one, "group", "")
    assert len({*read_pairs(Made(alone)).groups.tolist()}) == 3


def test_a_single_subset_is_not_repeated_as_a_row() -> None:
    assert [*read_pairs(Made([pair(0, ("a", "b"))])).rows] == ["all"]


def test_a_benchmark_without_pairs_is_refused_with_what_it_has() -> None:
    query = Query(key="q", subset="s", group="g", image=NONE, text="t", gallery=(NONE,), targets=frozenset({0}))
    with pytest.raises(
        WrongUse, match=r"Made \(2026\): no pairs of captions to probe \(1 not a pair of captions: a query"
    ):
        read_pairs(Made([query]))
    with pytest.raises(WrongUse, match=r"2 missing image"):
        read_pairs(Made([LeftOut("a", "missing image"), LeftOut("b", "missing image")]))
    with pytest.raises(WrongUse, match="no examples at all"):
        read_pairs(Made([]))
