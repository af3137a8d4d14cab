"""Batches are a function of the step; what cannot be read is replaced and named."""

from __future__ import annotations

import numpy as np
import pytest

from manifests.errors import WrongUse
from tests.made_datasets import MadeDataset
from tests.training.examples.conftest import tokenize
from training.examples.batches import Batches
from training.examples.contracts import Batch
from training.examples.example_set import open_examples
from training.examples.transforms import Transforms

ROLES = ("image", "text", "negative_text")


def open_batches(made: MadeDataset, crops: Transforms, batch: int = 4, **settings: object) -> Batches:
    examples = open_examples([f"{made.root}:eq-ag"], "pairs")
    return Batches(examples, crops, tokenize, batch, seed=7, roles=ROLES, **settings)  # type: ignore[arg-type]


def equal(one: Batch, other: Batch) -> bool:
    tensors = ({**batch.images, **batch.texts} for batch in (one, other))
    mine, its = ({role: tensor.numpy().tobytes() for role, tensor in some.items()} for some in tensors)
    return mine == its and (one.step, one.epoch, one.keys, one.left_out) == (
        other.step, other.epoch, other.keys, other.left_out
    )  # fmt: skip


def test_every_example_is_read_once_an_epoch_with_its_own_words(
    made_pairs: MadeDataset, small_crops: Transforms
) -> None:
    batches = open_batches(made_pairs, small_crops)
    assert batches.steps_per_epoch == 4
    read = [batches.at(step) for step in range(8)]
    assert [batch.epoch for batch in read] == [0] * 4 + [1] * 4
    first, second = ([key for batch in epoch for key in batch.keys] for epoch in (read[:4], read[4:]))
    assert first != second
    assert sorted(first) == sorted(second) == sorted(f"{key}-{n}" for key in made_pairs.kept["eq-ag"] for n in (0, 1))
    assert read[0].images["image"].shape == (4, 3, 32, 32)
    by_key = {batches.examples[number].key: batches.examples[number] for number in range(16)}
    for batch in read:
        for role in ("text", "negative_text"):
            assert np.array_equal(batch.texts[role], tokenize([by_key[key].texts[role] for key in batch.keys]))


def test_ranks_share_a_batch(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    whole = open_batches(made_pairs, small_crops).at(2)
    halves = [open_batches(made_pairs, small_crops, rank=rank, world=2).at(2) for rank in (0, 1)]
    assert whole.keys == halves[0].keys + halves[1].keys
    assert np.array_equal(whole.images["image"], np.concatenate([half.images["image"] for half in halves]))
    with pytest.raises(WrongUse, match="multiple of 3"):
        open_batches(made_pairs, small_crops, world=3)


def test_crops_differ_between_epochs_and_not_between_runs(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    first, again = (open_batches(made_pairs, small_crops, 16) for _ in range(2))
    assert equal(first.at(1), again.at(1))
    rows = [dict(zip(first.at(step).keys, first.at(step).images["image"], strict=True)) for step in (0, 1)]
    # Small pictures have few different crops.
    assert sum(not np.array_equal(rows[0][key], rows[1][key]) for key in rows[0]) >= 12
