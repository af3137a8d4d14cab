"""Held-out groups are whole, the same in any order, and the share that was asked for."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinset.contracts.errors import WrongUse
from twinset.training.examples.ordering import held_out

GROUPS = st.lists(st.integers(0, 30).map(str), min_size=2).filter(lambda groups: len(set(groups)) > 1)


@given(groups=GROUPS, share=st.floats(0.01, 0.99), seed=st.integers(0, 5))
def test_groups_are_whole_and_the_same_in_any_order(groups: list[str], share: float, seed: int) -> None:
    chosen = held_out(groups, share, seed)
    there = {group for group, one in zip(groups, chosen, strict=True) if one}
    assert not there & {group for group, one in zip(groups, chosen, strict=True) if not one}
    count = len(set(groups))
    assert len(there) == min(count - 1, math.ceil(share * count))
    mixed = random.Random(seed).sample(groups, len(groups))
    assert {group for group, one in zip(mixed, held_out(mixed, share, seed), strict=True) if one} == there


def test_another_seed_or_purpose_takes_other_groups() -> None:
    groups = [str(number) for number in range(200)]
    taken = [tuple(held_out(groups, 0.2, seed, what)) for seed, what in ((0, "test"), (1, "test"), (0, "validation"))]
    assert len(set(taken)) == 3


def test_one_group_cannot_be_split() -> None:
    with pytest.raises(WrongUse, match="1 group of examples cannot be split for test"):
        held_out(["a", "a"], 0.1, 0, "test")
