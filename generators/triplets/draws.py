"""Random numbers by index: what a triplet is drawn with depends on its own number alone.

Each is a hash of seed, subset, index, attempt and slot, so that triplet 1,000,000 needs none of those before it: any
range of indices gives the same triplets, whoever mines the rest.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import canonical_json
from twinset.generators.mixing import mixed

U64 = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: the increment of SplitMix64
_UNIT = 2.0**-53


class Draws:
    """The random numbers of one subset."""

    def __init__(self, seed: int, subset: str) -> None:
        hashed = hashlib.blake2b(canonical_json(["triplets", seed, subset]), digest_size=8).digest()
        self._key = np.uint64(int.from_bytes(hashed, "big"))

    def states(self, index: NDArray[np.int64], attempt: NDArray[np.int64]) -> U64:
        """One state for each pair of an index and an attempt at it."""
        of_index = mixed(index.astype(np.uint64) * _STEP + self._key)
        return mixed(of_index + attempt.astype(np.uint64) * _STEP)


def uniform(states: U64, slot: int) -> NDArray[np.float64]:
    """Numbers in [0, 1), independent for every slot of a state: multiples of 2^-53."""
    with np.errstate(over="ignore"):
        offset = np.uint64(slot + 1) * _STEP
    numbers: NDArray[np.float64] = (mixed(states + offset) >> np.uint64(11)).astype(np.float64) * _UNIT
    return numbers


def below(states: U64, slot: int, count: NDArray[np.integer]) -> NDArray[np.int64]:
    """Whole numbers from 0 up to each ``count`` (at least 1), all as likely to within count / 2^53."""
    return (uniform(states, slot) * count).astype(np.int64)
