"""What the tests of this room share: a tokenizer and transforms small enough to follow by eye."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from twinset.training.examples.transforms import Transforms


def tokenize(texts: Sequence[str]) -> NDArray[np.int64]:
    """The first 12 bytes of each text, (n, 12)."""
    return np.array([list(text.encode()[:12].ljust(12, b"\0")) for text in texts], np.int64)


@pytest.fixture
def small_crops() -> Transforms:
    return Transforms({"size": 32})
