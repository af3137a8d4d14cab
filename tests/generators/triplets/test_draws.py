"""Random numbers that depend on seed, subset and number alone."""

import numpy as np

from twinset.generators.triplets.draws import Draws, below, uniform


def test_random_numbers_are_even_and_unrelated() -> None:
    """By neighbouring numbers, attempts and slots, which are all that tells them apart."""
    draws, index = Draws(3, "triplets"), np.arange(1 << 16)
    states = draws.states(index, np.zeros_like(index))
    grid = np.stack(
        [
            uniform(states, 0),
            uniform(states, 1),
            uniform(draws.states(index, np.ones_like(index)), 0),
            uniform(draws.states(index + 1, np.zeros_like(index)), 0),
        ]
    )
    assert ((grid >= 0) & (grid < 1)).all()
    counts = np.stack([np.histogram(one, bins=64, range=(0, 1))[0] for one in grid])
    chi_square = ((counts - 1024) ** 2 / 1024).sum(axis=1)  # 63 degrees of freedom: 130 is a chance of 1e-6
    assert (chi_square < 130).all()
    related = np.corrcoef(grid) - np.eye(len(grid))
    assert np.abs(related).max() < 0.025  # 1/256 is its standard deviation
    whole = below(states, 0, np.full(len(states), 3, dtype=np.int32))
    assert set(whole.tolist()) == {0, 1, 2}
