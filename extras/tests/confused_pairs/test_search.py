"""The search for pairs above a cosine against all cosines: thresholds, blocks, threads and both precisions."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from twinset.models.encoders.contract import Floats, unit
from twinset_extras.confused_pairs import search
from twinset_extras.confused_pairs.search import TooMany, alike, cosines


def some_features(rows: int, width: int, shared: float) -> Floats:
    """Half of the rows are others, changed by little to much. shared: a part that all have in common."""
    drawn = np.random.default_rng(width)
    features = drawn.normal(size=(rows, width)) + shared
    features[rows // 2 :] = features[: rows - rows // 2] + drawn.normal(size=(rows - rows // 2, width)) * np.linspace(
        0, 0.6, rows - rows // 2
    ).reshape(-1, 1)
    return unit(features.astype(np.float32))


def exact(features: Floats) -> NDArray[np.longdouble]:
    """All cosines, in more digits."""
    wide = features.astype(np.longdouble)
    return np.asarray(wide @ wide.T)


@pytest.mark.slow
@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("width", [1, 5, 16, 50, 130])
@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_pairs_are_those_of_all_cosines(
    monkeypatch: pytest.MonkeyPatch, bfloat16: bool, width: int, shared: float
) -> None:
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: bfloat16)
    features = some_features(45, width, shared)
    every = exact(features)
    for above in (-0.2, 0.5, 0.9, 0.95, 0.999):
        expected = np.argwhere(np.triu(every > above, 1))
        assert len(expected) > 0
        for rows, columns, threads in ((512, 4096, 1), (1, 1, 2), (7, 20, 2), (32, 8, 1)):
            monkeypatch.setattr(search, "ROWS", rows)
            monkeypatch.setattr(search, "COLUMNS", columns)
            pairs, found = alike(features, above, threads)
            assert np.array_equal(pairs, expected)
            assert np.array_equal(found, cosines(features, pairs))
            assert np.allclose(found, every[tuple(expected.T)].astype(float), atol=1e-14, rtol=0)


@pytest.mark.slow
def test_few_directions_leave_out_nearly_all_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    def counted(features: Floats, pairs: search.Pairs) -> NDArray[np.float64]:
        asked.append(len(pairs))
        return cosines(features, pairs)

    monkeypatch.setattr(search, "cosines", counted)
    features = unit(np.random.default_rng(0).normal(size=(6000, 256)).astype(np.float32))
    features[10] = features[5000]
    pairs, found = alike(features, 0.95, 2)
    assert pairs.tolist() == [[10, 5000]] and found == pytest.approx(1, abs=1e-6)
    assert 1 <= sum(asked) < 6000**2 / 2 / 100


def test_a_cosine_at_the_threshold_is_not_above_it() -> None:
    features = np.array([[1, 0, 0], [0.5, 0.75, 0.4330127], [0.5, -0.75, 0.4330127]], np.float32)
    assert alike(features, 0.5, 1)[0].tolist() == []
    assert alike(features, np.nextafter(0.5, 0), 1)[0].tolist() == [[0, 1], [0, 2]]


def test_the_sum_of_a_cosine_does_not_depend_on_what_else_is_asked() -> None:
    features = some_features(40, 77, 0.0)
    pairs = np.stack(np.triu_indices(40, 1), axis=1)
    assert np.array_equal(cosines(features, pairs)[::7], cosines(features, pairs[::7]))
    assert cosines(features, pairs[:0]).shape == (0,)


def test_pairs_of_all_threads_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.ones((40, 1), np.float32)  # 780 pairs, at most 39 a row
    monkeypatch.setattr(search, "ROWS", 1)
    monkeypatch.setattr(search, "MOST", 100)
    blocks = search.Blocks(features, 0.5)
    with pytest.raises(TooMany):
        for start in range(40):
            blocks.alike(start)
    assert 100 < blocks._held <= 139


def test_one_row_has_no_pair() -> None:
    assert len(alike(some_features(2, 4, 0.0)[:1], 0.1, 1)[0]) == 0


def test_more_pairs_than_are_held_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    features = some_features(60, 8, 5.0)
    assert len(alike(features, 0.5, 2)[0]) == 60 * 59 // 2
    monkeypatch.setattr(search, "MOST", 60 * 59 // 2 - 1)
    for rows in (8, 512):
        monkeypatch.setattr(search, "ROWS", rows)
        with pytest.raises(TooMany):
            alike(features, 0.5, 2)
