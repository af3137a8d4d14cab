"""Order, augmentation and groups held out as pure functions of seed, epoch and key: resuming needs no loader state.

No batch holds one example of a mixture twice: as each other's negatives, two copies would each be counted wrong for the
answer of the other.
"""

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.training.examples.columns import Part


@lru_cache(maxsize=4)  # of two epochs where one ends, of training and of validation; 8 MB a million examples
def order(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation of n examples, (n,) int64, read-only.

    Each example gets 64 bits of Philox's raw stream and they are sorted by them: numpy promises these bits for all of
    its versions, but not what its `permutation` makes of them. Equal bits (n^2 / 2^65) stay in order.
    """
    bits = np.random.Philox(key=_entropy("order", seed, epoch)).random_raw(n)
    found = np.argsort(bits, kind="stable").astype(np.int64, copy=False)
    found.flags.writeable = False
    return found


def augmentation_bits(seed: int, epoch: int, key: str, copy: int, role: str, count: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) that decide how one image is cropped in one epoch, (count,) float64."""
    raw = np.random.Philox(key=_entropy("augmentation", seed, epoch, key, copy, role)).random_raw(count)
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53  # the upper 53 bits, as numpy's `random`


def _entropy(*parts: str | int) -> int:
    """128 bits from what a random stream is for."""
    return int.from_bytes(_hash(*parts), "big")


def held_out(groups: Sequence[str], share: float, seed: int, what: str = "validation") -> NDArray[np.bool_]:
    """Which examples are set aside.

    Groups are ordered by a hash of their name and the first of them are taken: neither the order of the examples nor
    their number in a group matters.

    Args:
        groups: of each example.
        share: of the groups, between 0 and 1; rounded up, and at least one stays.
        seed, what: two calls with others take other groups.

    Raises:
        WrongUse: there is only one group.
    """
    names = sorted(set(groups), key=lambda group: (_hash(seed, what, group), group))
    if len(names) < 2:
        raise WrongUse(f"{len(names)} group of examples cannot be split for {what}; train on data with more groups")
    chosen = set(names[: min(len(names) - 1, math.ceil(share * len(names)))])
    return np.fromiter((group in chosen for group in groups), np.bool_, len(groups))


def _hash(*parts: str | int) -> bytes:
    return hashlib.blake2b(canonical_json(list(parts)), digest_size=16).digest()


Integers = NDArray[np.int64]


def identities(parts: Sequence[Part]) -> Integers | None:
    """A number for each example of a mixture, (n,), equal for those of one key; None where no two are equal."""
    if len(parts) == 1 and parts[0].copies == 1:
        return None  # keys are unique within a dataset
    text = pa.large_string()
    sides = [
        pc.binary_join_element_wise(part.columns.keys, pa.scalar(side.suffix, text), pa.scalar("", text))
        for part in parts
        for side in part.sides
    ]
    codes = pa.concat_arrays(sides).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    found, start = [], 0
    for part in parts:
        end = start + len(part.columns) * len(part.sides)
        # From side after side to sample after sample, as `Part.example` counts.
        rows = codes[start:end].reshape(len(part.sides), -1).T.reshape(-1)
        found.append(np.tile(rows, part.copies).astype(np.int64))
        start = end
    joined = np.concatenate(found)
    return None if len(np.unique(joined)) == len(joined) else joined


def whole_batches(same: Integers, batch: int) -> int:
    """The most batches of an epoch, S, that can be filled without a copy beside another: Σ min(copies, S) ≥ S · batch.

    Args:
        same: as `identities` gives it. batch: examples of a batch.
    """
    copies = np.bincount(same)
    low, high = 0, len(same) // batch  # Σ min(copies, S) - S · batch is concave in S, and 0 at S = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(copies, middle).sum() >= middle * batch else (low, middle - 1)
    return low


def kept_apart(order: Integers, same: Integers, batch: int) -> Integers:
    """An order in which no whole batch holds two copies: each second copy changes places with an example nearby.

    An order without such batches stays as it is. What is left over after `whole_batches` may hold any copies.

    Args:
        order: numbers of the examples, (n,). same: as `identities` gives it. batch: examples of a batch.
    """
    steps = whole_batches(same, batch)
    too_many = _copies_before(same[order]) >= steps  # a batch holds one, so they are left over
    found = order[~too_many]
    ids, end = same[found], steps * batch
    for place in _second_copies(ids[:end], batch).tolist():
        while np.count_nonzero(ids[place // batch * batch :][:batch] == ids[place]) > 1:
            other = _partner(ids, place, batch, end)
            for values in (found, ids):
                values[[place, other]] = values[[other, place]]
    return np.concatenate([found, order[too_many]])


def _copies_before(ids: Integers) -> Integers:
    """How many of the same number come before each, (n,)."""
    by_id = np.argsort(ids, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(ids[by_id]) != 0])
    found = np.empty(len(ids), np.int64)
    found[by_id] = np.arange(len(ids)) - np.repeat(first, np.diff(np.r_[first, len(ids)]))
    return found


def _second_copies(ids: Integers, batch: int) -> Integers:
    """Places whose number is in their batch before, in order."""
    in_batch = np.arange(len(ids)) // batch * (ids.max(initial=0) + 1) + ids
    return np.flatnonzero(_copies_before(in_batch))


def _partner(ids: Integers, place: int, batch: int, end: int) -> int:
    """The place with which a second copy changes places; from ``end`` on are those that are left over.

    There is one. A number has at most as many copies as there are batches, and this batch has two of it: so another
    batch has none. That one holds a number which this batch lacks; or else, since this batch holds fewer than ``batch``
    different numbers, the other one holds one twice: moving the second of these here ends one repetition of two.
    """
    own = place // batch
    mine, batches = ids[own * batch :][:batch], -(-len(ids) // batch)
    second = -1
    for ahead in range(1, batches):
        start = (own + ahead) % batches * batch
        theirs = ids[start : start + batch]
        if start < end and (theirs == ids[place]).any():
            continue
        new = np.flatnonzero(~np.isin(theirs, mine))
        if len(new):
            return start + int(new[0])
        if second < 0 and start < end:
            second = start + int(np.flatnonzero(_copies_before(theirs))[0])
    return second
