"""The bootstrap clustered by group: what groups and seeds do to an interval."""

import numpy as np
import pyarrow as pa
import pytest

from twinset.evaluation.metrics.bootstrap import resampled
from twinset.evaluation.metrics.compare import compare
from twinset.evaluation.metrics.measure import measure


@pytest.mark.parametrize("counts", [[1] * 60, [400, 300, 200], [500, 20, *[1] * 30, 3]])
def test_resamples_are_those_of_clusters(counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every resample has as many clusters; the sums have the variance of drawing clusters, G · var(cluster)."""
    monkeypatch.setattr("twinset.evaluation.metrics.bootstrap._CELLS", 5000)  # in several blocks
    rng = np.random.default_rng(1)
    sums = np.stack([np.ones(len(counts)), rng.integers(0, 9, len(counts)), rng.integers(0, 9, len(counts))], 1)
    found = resampled(sums, np.array(counts), 4000, seed=3)
    assert found.shape == (4000, 3) and {*found[:, 0]} == {sum(counts)}
    clusters = np.repeat(sums, counts, axis=0)
    wanted = np.cov(clusters, rowvar=False, bias=True) * len(clusters)
    np.testing.assert_allclose(found.mean(0), clusters.sum(0), rtol=0.02)
    np.testing.assert_allclose(np.cov(found, rowvar=False), wanted, rtol=0.15, atol=0.03 * wanted.max())


def test_an_interval_depends_on_seed_and_rows_but_not_on_their_order() -> None:
    rng = np.random.default_rng(0)
    columns = {"correct": rng.random(500) < 0.4, "video": rng.integers(0, 60, 500), "half": ["a", "b"] * 250}
    table, shuffled = pa.table(columns), pa.table({name: np.array(one)[::-1] for name, one in columns.items()})
    first, second, again = (
        measure(one, ["half"], seed, group="video") for one, seed in ((table, 0), (table, 1), (shuffled, 0))
    )
    assert first == again and first.all.figures != second.all.figures
    assert measure(table, seed=0, group="video").all == first.all


def test_the_error_of_a_mean_is_that_of_its_clusters_and_it_begins_at_0_or_above() -> None:
    rng = np.random.default_rng(2)
    groups = rng.integers(0, 300, 3000)
    numbers = np.abs(rng.normal(size=3000) + rng.normal(size=300)[groups])  # equivariance of these scores
    table = pa.table({"s00": numbers, **dict.fromkeys(("s01", "s10", "s11"), np.zeros(3000)), "group": groups})
    found = measure(table).all.figures["mean_equivariance_text"]
    members = [numbers[groups == group] for group in np.unique(groups)]
    drawn = [np.concatenate([members[one] for one in rng.integers(0, 300, 300)]).mean() for _ in range(1000)]
    assert found.value == pytest.approx(numbers.mean(), abs=1e-9) and found.low is not None
    assert (found.value - found.low) / 1.96 == pytest.approx(np.std(drawn), rel=0.1)
    few = {"s00": [0.5, 0.5, 5.0], **dict.fromkeys(("s01", "s10"), [0.0] * 3), "s11": [0.5] * 3}
    figure = measure(pa.table(few)).all.figures["mean_equivariance_text"]
    assert figure.value == 1.5 and figure.low == 0


def test_a_figure_that_one_group_is_asked_has_no_interval() -> None:
    scores = {"s00": [1.0, 0.0, 1.0] + [1.0] * 6, "s01": [0.0, 1.0, 0.0] + [0.0] * 6}
    scores |= {"s10": [None] * 3 + [0.0] * 6, "s11": [None] * 3 + [1.0] * 6}
    table = pa.table({"key": [*"abcdefghi"], "group": ["x"] * 3 + [*"stuvwy"], **scores})
    found = measure(table).all.figures
    assert (found["accuracy"].low, found["accuracy"].rows) == (None, 3) and found["text"].low == 100
    counts = compare(table, table).table.select("figure", "n", "groups", "low").rows()
    assert {("accuracy", 3, 1, None), ("text", 6, 6, 0)} < {*counts}
