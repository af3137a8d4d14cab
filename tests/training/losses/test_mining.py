"""Hard negatives: texts of similar images, as the matching head orders them; negatives are distinct, hard first."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from twinset.training.losses.mining import (
    negatives_of_all,
    sample_negatives,
    score_neighbours,
    texts_of_neighbours,
)
from twinset.training.losses.names import ABSENT


@given(st.integers(2, 9), st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
@settings(max_examples=40)
def test_all_texts_of_the_nearest_images_are_hard_negatives(images: int, captions: int, k: int, seed: int) -> None:
    """With five captions an image, 128 images give 640 texts, not 26 images 128 (EqBen C)."""
    rng = np.random.default_rng(seed)
    image = rng.permutation(np.repeat(np.arange(images), captions))
    labels = np.stack([image, rng.integers(0, 4 * images, len(image))])
    near = np.stack([rng.permutation(np.delete(np.arange(images), own))[:k] for own in range(images)]).astype(np.int32)
    near[0, -1] = ABSENT
    places = texts_of_neighbours(near, labels)
    for number in range(images):
        own = set(labels[1, image == number].tolist())
        there = [example for other in near[number] if other != ABSENT for example in np.flatnonzero(image == other)]
        expected = [example for example in there if labels[1, example] not in own]
        assert places[number].tolist() == expected + [ABSENT] * (places.shape[1] - len(expected))


def test_the_fine_step_orders_by_the_matching_head() -> None:
    table, calls = torch.randn(6, 6, generator=torch.Generator().manual_seed(0)), []

    def score(images: Tensor, texts: Tensor) -> Tensor:
        calls.append(len(images))
        return table[images, texts]

    coarse = np.array([[(row + shift) % 6 for shift in (1, 3, 4)] for row in range(6)])
    coarse[2, 2] = ABSENT
    found = score_neighbours(score, coarse, np.stack([np.arange(6)] * 2), 4)
    assert max(calls) <= 4 and sum(calls) == 17
    for row in range(6):
        there = sorted(set(coarse[row].tolist()) - {ABSENT}, key=lambda place, row=row: -float(table[row, place]))
        assert found[row].tolist() == there + [ABSENT] * (3 - len(there))


def test_negatives_that_are_not_hard_are_uniform_over_the_rest() -> None:
    places = np.stack([(row + 1 + np.arange(5)) % 12 for row in range(12)])
    near, labels, rng = places, np.stack([np.arange(12)] * 2), np.random
    drawn, close = sample_negatives(near, np.full(3000, 3), rng.default_rng(0), 4, 2, labels)
    assert close.tolist() == [[True, True, False, False]] * 3000 and (drawn[:, :2] == torch.tensor([4, 5])).all()
    counts = np.bincount(drawn[:, 2:].ravel(), minlength=12)
    rest = np.delete(np.arange(12), [3, 4, 5])
    assert counts[[3, 4, 5]].sum() == 0 and np.allclose(counts[rest] / 6000, 1 / 9, atol=0.015)


@given(st.integers(0, 99), st.integers(4, 14))
@settings(max_examples=30)
def test_examples_that_share_an_image_or_a_text_are_no_negatives_of_each_other(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.stack([np.unique(rng.integers(0, n - 1, n), return_inverse=True)[1], rng.integers(0, n - 1, n)])
    others = [[other for other in range(n) if (labels[:, other] != labels[:, row]).all()] for row in range(n)]
    most, images = negatives_of_all(labels), labels[0].max() + 1
    assert most <= min(map(len, others))
    near = np.stack([np.delete(np.arange(images), own) for own in range(images)]).astype(np.int32)
    texts = texts_of_neighbours(near, labels) if images > 1 else np.empty((1, 0), np.int64)
    if most < 2 or (texts != ABSENT).sum(1).min() < 1:
        return
    for row, places in enumerate(sample_negatives(texts, np.arange(n), rng, most, 1, labels)[0].tolist()):
        assert places[0] == texts[labels[0, row], 0] and len({*places}) == most and {*places} <= {*others[row]}
