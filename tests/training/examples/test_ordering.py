"""Order and augmentation: permutations that depend on seed and epoch alone."""

import numpy as np

from twinset.training.examples.ordering import augmentation_bits, order


def test_an_order_holds_every_example_once_and_is_another_one_in_each_epoch() -> None:
    orders = [order(1000, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert all(sorted(one) == list(range(1000)) for one in orders)
    # Of two unrelated permutations one place in n agrees: 1 on average, 10 with a probability of 1e-7.
    assert all((one != other).sum() > 990 for at, one in enumerate(orders) for other in orders[:at])


def test_orders_are_those_of_every_release() -> None:
    # Fixed numbers: a checkpoint of an earlier version resumes in the same order.
    assert order(8, 42, 3).tolist() == [4, 6, 5, 2, 0, 1, 3, 7]
    assert augmentation_bits(42, 3, "eq-ag-1", 0, "image", 2).tolist() == [0.6122844792105288, 0.2645046323376251]


def test_augmentation_depends_on_everything_that_names_an_image() -> None:
    asked = [(0, 0, "a", 0, "image"), (1, 0, "a", 0, "image"), (0, 1, "a", 0, "image"), (0, 0, "b", 0, "image")]
    asked += [(0, 0, "a", 1, "image"), (0, 0, "a", 0, "negative_image")]
    found = np.array([augmentation_bits(*one, 40) for one in asked])
    assert len(np.unique(found)) == found.size
    assert 0 <= found.min() < 0.05 and 0.95 < found.max() < 1
