"""What the tests of this room share: a tokenizer and transforms small enough to follow by eye."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from twinset.training.examples.transforms import Transforms

TOKENS = 12


def tokenize(texts: Sequence[str]) -> NDArray[np.int64]:
    """The first bytes of each text, (n, TOKENS)."""
    return np.array([list(text.encode()[:TOKENS].ljust(TOKENS, b"\0")) for text in texts], np.int64)


@pytest.fixture
def small_crops() -> Transforms:
    return Transforms({"size": 32})
