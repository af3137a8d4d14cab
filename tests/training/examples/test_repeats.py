"""Copies of an example in a mixture: no batch holds two, and everything else stays as it is."""

from collections import Counter

import numpy as np
import pytest

from tests.made_datasets import MadeDataset
from tests.training.examples.conftest import tokenize
from twinset.contracts.errors import WrongUse
from twinset.shards.storage import layout
from twinset.training.examples.batches import Batches
from twinset.training.examples.example_set import open_examples
from twinset.training.examples.ordering import kept_apart, order, whole_batches
from twinset.training.examples.transforms import Transforms

ROLES = ("image", "text", "negative_text")


def of_copies(copies: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(copies)), copies)


@pytest.mark.parametrize(
    ("copies", "batch", "steps"),
    [
        ([1] * 10, 4, 2), ([2] * 10, 4, 5), ([2] * 10, 10, 2), ([5, 1, 1, 1], 2, 3), ([100] * 5 + [1] * 1000, 100, 10),
        ([3, 3, 1], 3, 1), ([9, 1], 3, 0),
    ],
)  # fmt: skip
def test_as_many_batches_as_can_be_filled_without_copies(copies: list[int], batch: int, steps: int) -> None:
    same = of_copies(copies)
    assert whole_batches(same, batch) == steps
    for seed in range(20):
        before = order(len(same), seed, 0)
        after = kept_apart(before, same, batch)
        assert np.array_equal(np.sort(after), np.arange(len(same)))
        for step in range(steps):
            assert len(np.unique(same[after[step * batch :][:batch]])) == batch, (seed, step)


def test_full_batches_of_any_copies_are_kept_apart() -> None:
    chance = np.random.default_rng(0)
    for _ in range(100):
        same = of_copies(chance.integers(1, 6, chance.integers(2, 12)).tolist())
        batch = int(chance.integers(2, 8))
        steps, after = whole_batches(same, batch), kept_apart(chance.permutation(len(same)), same, batch)
        taken = same[after[: steps * batch]].reshape(steps, batch)
        assert all(len(np.unique(row)) == batch for row in taken)


def test_an_order_without_copies_in_a_batch_stays_as_it_is() -> None:
    same = of_copies([2] * 200)
    before = order(400, 7, 0)
    after = kept_apart(before, same, 4)
    moved = np.flatnonzero(before != after)
    repeated = [step for step in range(100) if len(np.unique(same[before[step * 4 :][:4]])) < 4]
    assert 0 < len(moved) <= 2 * len(repeated)


def test_a_repeated_dataset_puts_no_pair_into_a_batch_twice(made_pairs: MadeDataset, small_crops: Transforms) -> None:
    place = f"{made_pairs.root}:eq-ag"
    for places in ([f"{place}*2"], [place, place], [f"{made_pairs.root}:eq-ag", str(made_pairs.root)]):
        examples = open_examples(places, "pairs", twins="first")
        batches = Batches(examples, small_crops, tokenize, 8, 7, ROLES)
        read = [batches.at(step) for step in range(batches.steps_per_epoch)]
        assert len(read) == len(examples) // 8 and all(len({*batch.keys}) == 8 for batch in read)
    assert Counter(key for batch in read for key in batch.keys).most_common(1)[0][1] == 2
    # Two keys of one pair are different answers.
    both = open_examples([f"{place}*2"], "pairs")
    assert both.distinct == 16 and Batches(both, small_crops, tokenize, 16, 7, ROLES).steps_per_epoch == 2
    with pytest.raises(WrongUse, match="16 different examples do not fill a batch of 17"):
        Batches(both, small_crops, tokenize, 17, 7, ROLES)


def test_what_takes_the_place_of_a_broken_example_is_no_copy_either(
    made_pairs: MadeDataset, small_crops: Transforms
) -> None:
    examples = open_examples([f"{made_pairs.root}:eq-ag*3"], "pairs")
    batches = Batches(examples, small_crops, tokenize, 4, 7, ROLES, max_broken=0.5)
    (made_pairs.root / layout.tar("eq-ag", "test", 0)).write_bytes(b"")
    read = [batches.at(step) for step in range(2 * batches.steps_per_epoch)]
    assert any(batch.left_out for batch in read)
    assert all(len({*batch.keys}) == 4 for batch in read)
