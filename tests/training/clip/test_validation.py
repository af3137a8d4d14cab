"""Validation: batches of one size, and groups that count alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinset.training.clip.validation import batch_size, mean_of_groups


@given(examples=st.integers(2, 2000), largest=st.integers(2, 400))
@settings(max_examples=50)
def test_batches_leave_out_less_than_one_example_each(examples: int, largest: int) -> None:
    size = batch_size(examples, largest)
    assert 2 <= size <= min(examples, largest)
    assert examples % size < max(2, examples // size)


@pytest.mark.parametrize(("examples", "size"), [(8, 2), (7, 2), (3, 2), (2, 2)])
def test_no_batch_is_of_one_example_which_would_always_be_right(examples: int, size: int) -> None:
    assert batch_size(examples, 2) == size


def test_each_group_counts_once() -> None:
    assert mean_of_groups(np.array([True, True, True, False]), ["a", "a", "a", "b"]) == 50
