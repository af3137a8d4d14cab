"""Which rows belong together: labels from the columns named by ``--by``, digests of groups and keys."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.evaluation.score_files.batch import Batch
from twinset.manifests.errors import WrongUse

MOST_LABELS = 1000
_BETWEEN = "\x1f"  # a control character
_LONG = 256  # bytes: longer values are digested one by one
_ONES = np.uint64(2**64 - 1)
Digests = NDArray[np.uint64]


class Labels:
    """Numbers the values of some columns as batches come; of two columns a value is a pair of theirs.

    names: the values met so far, in order of their numbers; "value / value" for two columns.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns, self._numbers = tuple(columns), dict[str, int]()

    @property
    def names(self) -> list[str]:
        """The values, raises `WrongUse` where two of them read the same."""
        names = [value.replace(_BETWEEN, " / ") for value in self._numbers]
        if len({*names}) < len(names):
            raise WrongUse(f"--by {','.join(self.columns)}: values with ' / ' in them cannot be told apart")
        return names

    def numbered(self, batch: Batch) -> NDArray[np.uint16]:
        """The number of each row's value; raises `WrongUse` for a null, and for more than `MOST_LABELS` values."""
        encoded = _joined(batch, self.columns).dictionary_encode()
        for value in encoded.dictionary.to_pylist():
            self._numbers.setdefault(value, len(self._numbers))
        if len(self._numbers) > MOST_LABELS:
            what = f"--by {','.join(self.columns)}: more than {MOST_LABELS:,} values"
            raise WrongUse(f"{batch.where}: {what}; name columns of categories")
        numbers = np.array([self._numbers[value] for value in encoded.dictionary.to_pylist()], np.uint16)
        return np.asarray(numbers[np.asarray(encoded.indices)])


def _joined(batch: Batch, columns: Sequence[str], empty: bool = True) -> pa.Array:
    """The values of some columns as one text a row: ("a", "bc") is not ("ab", "c")."""
    parts = [batch.texts(name, empty) for name in columns]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _BETWEEN)


def digests(batch: Batch, columns: Sequence[str], empty: bool = True) -> Digests:
    """64-bit digests of the values of some columns together, shape (n,).

    Of 2,000,000 different values two agree with probability 1e-7. Values are mixed, not encrypted: one who chooses them
    with care can make two agree.
    """
    texts = _joined(batch, columns, empty)
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    begins, lengths = places[:-1], np.diff(places)
    # Every byte with the seven after it, as one number: the bytes that a value lacks are masked below.
    bytes_ = np.zeros(int(places[-1] - places[0]) + 8, np.uint8)
    bytes_[:-8] = np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]
    words = np.ndarray(len(bytes_) - 7, "<u8", bytes_, strides=(1,))
    begins = begins - places[0]
    found = _mixed(lengths.astype(np.uint64))
    for first in range(0, min(_LONG, int(lengths.max(initial=0))), 8):
        rows = np.flatnonzero(lengths > first)
        lacking = np.maximum(0, first + 8 - lengths[rows]).astype(np.uint64)
        word = words[begins[rows] + first] & (_ONES >> (lacking * np.uint64(8)))
        found[rows] = _mixed(found[rows] ^ word)
    for row in np.flatnonzero(lengths > _LONG).tolist():
        value = bytes_[begins[row] : begins[row] + lengths[row]].tobytes()
        found[row] = int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")
    return found


def _mixed(numbers: Digests) -> Digests:
    """Numbers that differ in about half of their bits where the given ones differ: splitmix64 (Steele et al. 2014).

    It maps no two numbers to one. So two values of one length only agree by chance.
    """
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
