"""Columns of numbers, sets of them as sorted columns, and uniform numbers by index.

What a triplet is drawn with depends on its own number alone: each number is a hash of seed, subset, index, attempt and
slot, so that triplet 1,000,000 needs none of those before it: any range of indices gives the same triplets, whoever
mines the rest.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.canonical import canonical_json, mixed

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NONE = -1  # in place of a relation: there is none


def first_of_each(ordered: NDArray[Any]) -> Bools:
    """Of sorted values, whether each is the first of its equals."""
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different values, sorted, as `numpy.unique` gives them, which takes ten times as long for millions."""
    ordered = np.sort(values)
    return np.asarray(ordered[first_of_each(ordered)])


def numbered(values: NDArray[np.int64]) -> Codes:
    """Numbers of values, equal for equal ones and in their order: the inverse of `numpy.unique`, in less memory."""
    order = np.argsort(values, kind="stable")
    number = np.empty(len(values), dtype=np.int32)
    number[order] = np.cumsum(first_of_each(values[order]), dtype=np.int32) - 1
    return number


def found_in(ordered: NDArray[np.int64], values: NDArray[np.int64]) -> Bools:
    """Whether each value is among sorted ones."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.asarray(ordered[at] == values)


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


def below(states: U64, slot: int, count: NDArray[np.int32]) -> NDArray[np.int64]:
    """Whole numbers from 0 up to each ``count`` (at least 1), all as likely to within count / 2^53."""
    return (uniform(states, slot) * count).astype(np.int64)
