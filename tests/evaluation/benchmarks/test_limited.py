"""A part of a benchmark, drawn by seed: strata, the same rows again, nothing read twice."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.evaluation.features.small_benchmark import SmallBenchmark
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.limited import Limited, shares
from twinset.evaluation.examples import LeftOut, Matching, Picture


def unread() -> bytes:
    raise AssertionError("no image is read")


def examples(order: int = 1) -> Iterator[Matching | LeftOut]:
    made = [
        Matching(
            key=f"{subset}-{n}", subset=subset, group=f"g{n}", category=f"c{n % 5 == 0}",
            images=(Picture("p", unread),), captions=("a", "b"),
        )
        for subset, count in (("large", 500), ("small", 7))
        for n in range(count)
    ]  # fmt: skip
    yield from made[::order]
    yield LeftOut("x.jpg", "missing image")


def keys(limit: int, seed: int = 0, order: int = 1) -> list[str]:
    found = Limited(SmallBenchmark(lambda: [*examples(order)]), limit, seed).examples()
    return [one.key for one in found if isinstance(one, Matching)]


def test_each_subset_gives_as_many_by_the_shares_of_its_categories() -> None:
    found = [*Limited(SmallBenchmark(lambda: [*examples()]), 20, 0).examples()]
    drawn = [one for one in found if isinstance(one, Matching)]
    counts = Counter((one.subset, one.category) for one in drawn)
    assert counts == {("large", "cTrue"): 4, ("large", "cFalse"): 16, ("small", "cTrue"): 2, ("small", "cFalse"): 5}
    assert [one for one in found if isinstance(one, LeftOut)] == [LeftOut("x.jpg", "missing image")]


def test_the_same_rows_in_any_order_others_with_another_seed_and_more_with_a_larger_limit() -> None:
    assert sorted(keys(20)) == sorted(keys(20, order=-1)) != sorted(keys(20, seed=1))
    assert {*keys(20)} < {*keys(40)} and len(keys(10_000)) == 507


def test_its_digest_and_title_say_what_was_drawn() -> None:
    whole = SmallBenchmark(lambda: [*examples()])
    assert len({Limited(whole, *how).digest() for how in ((20, 0), (20, 1), (21, 0))} | {whole.digest()}) == 4
    assert Limited(whole, 20, 3).title == "Small (2026), 20 of each subset (seed 3)"
    with pytest.raises(WrongUse, match="limit 0"):
        Limited(whole, 0, 0)


def test_shares_add_up() -> None:
    for total in range(14):
        found = shares({("s", "a"): 1, ("s", "b"): 3, ("s", "c"): 9}, total)
        assert sum(found.values()) == total and all(found["s", name] <= n for name, n in (("a", 1), ("b", 3), ("c", 9)))
