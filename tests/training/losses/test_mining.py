"""Neighbours: equal to sorting all pairs; what is saved is read back; negatives are distinct and hard ones first."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from twinset.manifests.errors import WrongUse
from twinset.training.losses.mining import (
    Neighbours,
    load_neighbours,
    nearest,
    negatives_of_all,
    sample_negatives,
    score_neighbours,
)


def neighbours(n: int = 12, k: int = 5) -> Neighbours:
    places = np.stack([(row + 1 + np.arange(k)) % n for row in range(n)])
    return Neighbours(places, np.tile(np.arange(k, 0, -1, dtype=np.float32), (n, 1)), "sha")


@given(st.integers(2, 12), st.integers(1, 12), st.integers(1, 13), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_nearest_images_are_those_of_a_sorted_list(n: int, k: int, rows: int, seed: int) -> None:
    features = functional.normalize(torch.randn(n, 4, generator=torch.Generator().manual_seed(seed)), dim=1)
    found = nearest(features, k, rows)
    for row, places in enumerate(found.tolist()):
        others = [one for one in range(n) if one != row]
        assert places == sorted(others, key=lambda one: -float(features[row] @ features[one]))[:k]


def test_the_fine_step_orders_by_the_matching_head(tmp_path: Path) -> None:
    table, calls = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)), []

    def score(images: Tensor, texts: Tensor) -> Tensor:
        calls.append(len(images))
        return table[images, texts]

    coarse = torch.tensor([[(row + shift) % 6 for shift in (1, 3, 4)] for row in range(6)])
    found = score_neighbours(score, coarse, "sha", pairs=4)
    assert max(calls) <= 4 and sum(calls) == 18
    for row in range(6):
        assert found.places[row].tolist() == sorted(coarse[row].tolist(), key=lambda one: -float(table[row, one]))
        assert found.scores[row].tolist() == [float(table[row, one]) for one in found.places[row]]
    found.save(tmp_path / "neighbours.safetensors")
    again = load_neighbours(tmp_path / "neighbours.safetensors", "sha")
    assert np.array_equal(again.places, found.places) and np.array_equal(again.scores, found.scores)
    with pytest.raises(WrongUse, match=r"neighbours\.safetensors: made of other examples"):
        load_neighbours(tmp_path / "neighbours.safetensors", "another")
    (tmp_path / "broken").write_bytes(b"\x80\x04pickle")
    with pytest.raises(WrongUse, match="broken: not a file of neighbours"):
        load_neighbours(tmp_path / "broken", "sha")


@given(st.integers(0, 99), st.integers(1, 11), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_negatives_are_distinct_with_the_hardest_first(seed: int, negatives: int, hard: int) -> None:
    hard = min(hard, negatives)
    rows = np.array([0, 7, 11])
    places, close = sample_negatives(neighbours(), rows, np.random.default_rng(seed), negatives, hard)
    assert places.shape == close.shape == (3, negatives) and close.sum(1).tolist() == [hard] * 3
    for row, found, near in zip(rows.tolist(), places.tolist(), close.tolist(), strict=True):
        assert len({row, *found}) == negatives + 1 and set(found) <= set(range(12))
        assert found[:hard] == neighbours().places[row, :hard].tolist() and all(near[:hard])


def test_other_negatives_are_uniform_over_the_rest() -> None:
    rng = np.random.default_rng(0)
    drawn = [sample_negatives(neighbours(), np.array([3]), rng, 4, 2)[0][0, 2:].tolist() for _ in range(3000)]
    counts = np.bincount(np.array(drawn).ravel(), minlength=12)
    rest = [one for one in range(12) if one not in (3, 4, 5)]
    assert counts[[3, 4, 5]].sum() == 0
    assert np.allclose(counts[rest] / 6000, 1 / 9, atol=0.015)


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(WrongUse, match="12 negatives, 8 of them hard: there are 5 neighbours and 11"):
        sample_negatives(neighbours(), np.array([0]), np.random.default_rng(0), 12, 8)


@given(st.integers(0, 99), st.integers(4, 14))
@settings(max_examples=30, deadline=None)
def test_examples_that_share_an_image_or_a_text_are_no_negatives_of_each_other(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n - 1, (2, n))
    apart = [[other for other in range(n) if (labels[:, other] != labels[:, row]).all()] for row in range(n)]
    most = negatives_of_all(labels)
    assert most <= min(map(len, apart))
    features = functional.normalize(torch.randn(n, 4, generator=torch.Generator().manual_seed(seed)), dim=1)
    if most < 2:
        return
    found = nearest(features, n, rows=3, labels=labels)
    assert found.shape == (n, most)
    for row, places in enumerate(found.tolist()):
        assert places == sorted(apart[row], key=lambda one: -float(features[row] @ features[one]))[:most]
    near = Neighbours(found.numpy(), np.zeros(found.shape, np.float32), "sha")
    for row, places in enumerate(sample_negatives(near, np.arange(n), rng, most, 1, labels)[0].tolist()):
        assert places[0] == found[row, 0] and len({*places}) == most and {*places} <= {*apart[row]}
