"""Hashes of 64 bits, by which sources choose among what is equal: the same wherever they are computed."""

import numpy as np
from numpy.typing import NDArray


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), in place: every bit of x flips half of the output."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x
