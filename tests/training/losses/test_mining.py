"""Hard negatives: texts of similar images, as the matching head orders them; negatives are distinct, hard first."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from twinset.contracts.errors import WrongUse
from twinset.training.losses.mining import (
    Labels,
    Neighbours,
    load_neighbours,
    negatives_of_all,
    sample_negatives,
    score_neighbours,
    texts_of_neighbours,
)
from twinset.training.losses.names import ABSENT


def neighbours(n: int = 12, k: int = 5) -> Neighbours:
    places = np.stack([(row + 1 + np.arange(k)) % n for row in range(n)])
    return Neighbours(places, np.tile(np.arange(k, 0, -1, dtype=np.float32), (n, 1)), "sha")


def apart(n: int = 12) -> Labels:
    """Examples of which each has an image and a text of its own."""
    return np.stack([np.arange(n)] * 2)


@given(st.integers(2, 9), st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=40)
def test_all_texts_of_the_nearest_images_are_hard_negatives(images: int, captions: int, k: int, seed: int) -> None:
    """With five captions an image, 128 images give 640 texts, not 26 images 128 (EqBen C)."""
    rng = np.random.default_rng(seed)
    image = rng.permutation(np.repeat(np.arange(images), captions))
    labels = np.stack([image, rng.integers(0, 4 * images, len(image))])
    near = np.stack([rng.permutation(np.delete(np.arange(images), one))[:k] for one in range(images)]).astype(np.int32)
    near[0, -1] = ABSENT
    found = texts_of_neighbours(near, labels)
    for one in range(images):
        own = set(labels[1, image == one].tolist())
        expected = [
            example
            for other in near[one].tolist()
            if other != ABSENT
            for example in np.flatnonzero(image == other).tolist()
            if labels[1, example] not in own
        ]
        assert found[one].tolist() == expected + [ABSENT] * (found.shape[1] - len(expected))


def test_the_fine_step_orders_by_the_matching_head(tmp_path: Path) -> None:
    table, calls = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)), []

    def score(images: Tensor, texts: Tensor) -> Tensor:
        calls.append(len(images))
        return table[images, texts]

    coarse = np.array([[(row + shift) % 6 for shift in (1, 3, 4)] for row in range(6)])
    coarse[2, 2] = ABSENT
    found = score_neighbours(score, coarse, apart(6), "sha", 4)
    assert max(calls) <= 4 and sum(calls) == 17
    for row in range(6):
        there = [one for one in coarse[row].tolist() if one != ABSENT]
        assert found.places[row, : len(there)].tolist() == sorted(there, key=lambda one: -float(table[row, one]))
        assert found.scores[row, : len(there)].tolist() == [
            float(table[row, one]) for one in found.places[row][: len(there)]
        ]
    assert found.places[2, 2] == ABSENT and found.scores[2, 2] == -np.inf
    found.save(tmp_path / "neighbours.safetensors")
    again = load_neighbours(tmp_path / "neighbours.safetensors", "sha")
    assert np.array_equal(again.places, found.places) and np.array_equal(again.scores, found.scores)
    with pytest.raises(WrongUse, match=r"neighbours\.safetensors: made of other examples"):
        load_neighbours(tmp_path / "neighbours.safetensors", "another")
    (tmp_path / "broken").write_bytes(b"\x80\x04pickle")
    with pytest.raises(WrongUse, match="broken: not a file of neighbours"):
        load_neighbours(tmp_path / "broken", "sha")


@given(st.integers(0, 99), st.integers(1, 11), st.integers(0, 5))
@settings(max_examples=40)
def test_negatives_are_distinct_with_the_hardest_first(seed: int, negatives: int, hard: int) -> None:
    hard = min(hard, negatives)
    rows = np.array([0, 7, 11])
    places, close = sample_negatives(neighbours(), rows, np.random.default_rng(seed), negatives, hard, apart())
    assert places.shape == close.shape == (3, negatives) and close.sum(1).tolist() == [hard] * 3
    for row, found, near in zip(rows.tolist(), places.tolist(), close.tolist(), strict=True):
        assert len({row, *found}) == negatives + 1 and set(found) <= set(range(12))
        assert found[:hard] == neighbours().places[row, :hard].tolist() and all(near[:hard])


def test_other_negatives_are_uniform_over_the_rest() -> None:
    rng = np.random.default_rng(0)
    drawn = [sample_negatives(neighbours(), np.array([3]), rng, 4, 2, apart())[0][0, 2:].tolist() for _ in range(3000)]
    counts = np.bincount(np.array(drawn).ravel(), minlength=12)
    rest = [one for one in range(12) if one not in (3, 4, 5)]
    assert counts[[3, 4, 5]].sum() == 0
    assert np.allclose(counts[rest] / 6000, 1 / 9, atol=0.015)


def test_too_few_examples_are_refused() -> None:
    with pytest.raises(WrongUse, match="12 negatives, 8 of them hard: there are 5 neighbours and 11"):
        sample_negatives(neighbours(), np.array([0]), np.random.default_rng(0), 12, 8, apart())


@given(st.integers(0, 99), st.integers(4, 14))
@settings(max_examples=30)
def test_examples_that_share_an_image_or_a_text_are_no_negatives_of_each_other(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.stack([np.unique(rng.integers(0, n - 1, n), return_inverse=True)[1], rng.integers(0, n - 1, n)])
    others = [[other for other in range(n) if (labels[:, other] != labels[:, row]).all()] for row in range(n)]
    most, images = negatives_of_all(labels), labels[0].max() + 1
    assert most <= min(map(len, others))
    near = np.stack([np.delete(np.arange(images), one) for one in range(images)]).astype(np.int32)
    texts = texts_of_neighbours(near, labels) if images > 1 else np.empty((1, 0), np.int64)
    if most < 2 or (texts != ABSENT).sum(1).min() < 1:
        return
    found = Neighbours(texts, np.zeros(texts.shape, np.float32), "sha")
    for row, places in enumerate(sample_negatives(found, np.arange(n), rng, most, 1, labels)[0].tolist()):
        assert places[0] == texts[labels[0, row], 0] and len({*places}) == most and {*places} <= {*others[row]}
