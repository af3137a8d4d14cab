"""Order and augmentation as functions of seed, epoch and key: resuming needs no loader state."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import digest

Integers = NDArray[np.int64]


@lru_cache(maxsize=4)  # of two epochs where one ends, of training and of validation; 8 MB a million examples
def order(n: int, seed: int, epoch: int) -> Integers:
    """A permutation of n examples, (n,) int64, read-only.

    Each example gets 64 bits of Philox's raw stream and they are sorted by them: numpy promises these bits for all of
    its versions, but not what its `permutation` makes of them. Equal bits (n^2 / 2^65) stay in order.
    """
    bits = np.random.Philox(key=int(digest(["order", seed, epoch]), 16)).random_raw(n)
    numbers = np.argsort(bits, kind="stable").astype(np.int64, copy=False)
    numbers.flags.writeable = False
    return numbers


def augmentation_seed(seed: int, epoch: int, key: str, role: str) -> int:
    """63 bits that decide how one image is changed in one epoch."""
    return int(digest(["augmentation", seed, epoch, key, role])[:16], 16) >> 1
