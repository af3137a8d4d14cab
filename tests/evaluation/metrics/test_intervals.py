"""The bootstrap clustered by group: its weights, and what groups do to an interval."""

import numpy as np
import pyarrow as pa
import pytest

from twinset.evaluation.metrics.bootstrap import interval, resampled
from twinset.evaluation.metrics.measure import measure


@pytest.mark.parametrize("counts", [[1] * 60, [400, 300, 200], [500, 20, *[1] * 30, 3]])
def test_resamples_are_those_of_clusters(counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every resample has as many clusters; the sums have the variance of drawing clusters, G · var(cluster)."""
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._CELLS", 5000)  # in several blocks
    rng = np.random.default_rng(1)
    sums = np.stack([np.ones(len(counts)), rng.integers(0, 9, len(counts)), rng.integers(0, 9, len(counts))], 1)
    found = resampled(sums.astype(np.int64), np.array(counts), 4000, seed=3)
    assert found.shape == (4000, 3) and {*found[:, 0]} == {sum(counts)}
    clusters = np.repeat(sums, counts, axis=0)
    wanted = np.cov(clusters, rowvar=False, bias=True) * len(clusters)
    np.testing.assert_allclose(found.mean(0), clusters.sum(0), rtol=0.02)
    np.testing.assert_allclose(np.cov(found, rowvar=False), wanted, rtol=0.15, atol=0.03 * wanted.max())


def test_sums_depend_neither_on_precision_nor_on_how_many_are_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    sums, counts = rng.integers(-5, 20, (90, 3)).astype(np.int8), rng.choice([1, 2, 5, 400], 90)
    once = resampled(sums, counts, 500, seed=1)
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._DRAWS", 100)
    np.testing.assert_array_equal(resampled(sums, counts, 500, seed=1), once)
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._EXACT", 0)
    np.testing.assert_array_equal(resampled(sums, counts, 500, seed=1), once)


def test_an_interval_equals_that_of_a_loop_over_drawn_clusters() -> None:
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 50, 600)
    right = rng.random(600) < 0.2 + 0.6 * (groups % 2)
    table = pa.table({"correct": right, "group": [f"g{group}" for group in groups]})
    figure = measure(table, resamples=4000).all.figures["accuracy"]
    members = [right[groups == group] for group in np.unique(groups)]
    drawn = [100 * np.concatenate([members[one] for one in rng.integers(0, 50, 50)]).mean() for _ in range(4000)]
    assert (figure.low, figure.high) == pytest.approx(interval(np.array(drawn)), abs=0.6)


def test_copies_of_a_row_in_its_group_tell_nothing_new() -> None:
    right = np.random.default_rng(0).random(200) < 0.5
    once = pa.table({"correct": right, "group": [f"g{row}" for row in range(200)]})
    copied = pa.concat_tables([once] * 20)
    one, other = (measure(table).all.figures["accuracy"] for table in (once, copied))
    assert (one.low, one.high) == (other.low, other.high)
    rows = measure(copied.drop_columns("group")).all.figures["accuracy"]
    assert None not in (one.low, one.high, rows.low, rows.high)
    assert (one.high - one.low) / (rows.high - rows.low) == pytest.approx(20**0.5, rel=0.1)  # type: ignore[operator]


def test_an_interval_depends_on_seed_and_rows_but_not_on_their_order() -> None:
    rng = np.random.default_rng(0)
    columns = {"correct": rng.random(500) < 0.4, "video": rng.integers(0, 60, 500), "half": ["a", "b"] * 250}
    table, shuffled = pa.table(columns), pa.table({name: np.array(one)[::-1] for name, one in columns.items()})
    first, other, again = (
        measure(one, ["half"], seed, group="video") for one, seed in ((table, 0), (table, 1), (shuffled, 0))
    )
    assert first == again and first.all.figures != other.all.figures
    alone = measure(table, seed=0, group="video")
    assert alone.all == first.all


def test_one_group_has_no_interval() -> None:
    found = measure(pa.table({"correct": [True, False], "group": ["a", "a"]}))
    assert (found.all.figures["accuracy"].low, found.all.groups) == (None, 1)
    assert any("only one group" in note for note in found.notes)
    assert found.as_json()["all"]["interval"] == {}


def test_the_error_of_a_mean_is_that_of_its_clusters() -> None:
    rng = np.random.default_rng(2)
    groups = np.sort(rng.integers(0, 300, 3000).astype(np.uint64))
    numbers = np.abs(rng.normal(size=3000) + rng.normal(size=300)[groups.astype(int)]).astype(np.float32)
    # Equivariance of these scores is the numbers.
    table = pa.table({"s00": numbers, **dict.fromkeys(("s01", "s10", "s11"), np.zeros(3000)), "group": groups})
    found = measure(table).all.figures["mean_equivariance_text"]
    members = [numbers[groups == group] for group in np.unique(groups)]
    drawn = [np.concatenate([members[one] for one in rng.integers(0, len(members), len(members))]) for _ in range(1000)]
    assert found.value == pytest.approx(numbers.mean(dtype=np.float64), abs=1e-9)
    assert found.low is not None
    error = (found.value - found.low) / 1.96
    assert error == pytest.approx(np.std([one.mean() for one in drawn]), rel=0.1)
    sums = np.array([(one - found.value).sum(dtype=np.float64) for one in members])
    assert error == pytest.approx(np.sqrt(300 / 299 * np.square(sums).sum()) / 3000, rel=1e-4)
