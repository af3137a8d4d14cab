"""The search for pairs above a cosine against all cosines: thresholds and blocks."""

import numpy as np
import pytest
from numpy.typing import NDArray

from twinset.models.encoders.contract import unit
from twinset_extras.confused_pairs import search
from twinset_extras.confused_pairs.search import Floats, TooMany, alike, cosines


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


@pytest.mark.parametrize("width", [1, 5, 16, 130])
@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_pairs_are_those_of_all_cosines(monkeypatch: pytest.MonkeyPatch, width: int, shared: float) -> None:
    features = some_features(45, width, shared)
    every = exact(features)
    for above in (-0.2, 0.5, 0.9, 0.95, 0.999):
        expected = np.argwhere(np.triu(every > above, 1))
        assert len(expected) > 0
        for block in (1, 7, 2048):
            monkeypatch.setattr(search, "BLOCK", block)
            pairs, found = alike(features, above)
            assert np.array_equal(pairs, expected)
            assert np.array_equal(found, cosines(features, pairs))
            assert np.allclose(found, every[tuple(expected.T)].astype(float), atol=1e-14, rtol=0)


def test_a_cosine_at_the_threshold_is_not_above_it() -> None:
    features = np.array([[1, 0, 0], [0.5, 0.75, 0.4330127], [0.5, -0.75, 0.4330127]], np.float32)
    assert alike(features, 0.5)[0].tolist() == []
    assert alike(features, np.nextafter(0.5, 0))[0].tolist() == [[0, 1], [0, 2]]


def test_the_sum_of_a_cosine_does_not_depend_on_what_else_is_asked() -> None:
    features = some_features(40, 77, 0.0)
    pairs = np.stack(np.triu_indices(40, 1), axis=1)
    assert np.array_equal(cosines(features, pairs)[::7], cosines(features, pairs[::7]))
    assert cosines(features, pairs[:0]).shape == (0,)


def test_one_row_has_no_pair() -> None:
    assert len(alike(some_features(2, 4, 0.0)[:1], 0.1)[0]) == 0


def test_more_pairs_than_are_held_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    features = some_features(60, 8, 5.0)
    assert len(alike(features, 0.5)[0]) == 60 * 59 // 2
    monkeypatch.setattr(search, "MOST", 60 * 59 // 2 - 1)
    for block in (8, 512):
        monkeypatch.setattr(search, "BLOCK", block)
        with pytest.raises(TooMany):
            alike(features, 0.5)
