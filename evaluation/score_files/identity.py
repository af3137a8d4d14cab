"""Which rows belong together: labels from the columns named by ``--by``, digests of groups and keys."""

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

    Of 2,000,000 different values two agree with probability 1e-7.
    """
    encoded = _joined(batch, columns, empty).cast(pa.binary()).dictionary_encode()
    found = b"".join(hashlib.blake2b(value, digest_size=8).digest() for value in encoded.dictionary.to_pylist())
    return np.asarray(np.frombuffer(found, "<u8")[np.asarray(encoded.indices)])
