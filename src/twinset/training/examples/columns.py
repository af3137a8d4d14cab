"""Examples of one dataset in columns: some hundred bytes each, most of them its captions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinset.shards.storage.store import Store
from twinset.training.examples.contracts import Example, Place

SHORT_DIGITS = 16  # hexadecimal digits of an image's sha256 that are kept: 8 bytes
UNKNOWN = SHORT_DIGITS * "0"  # of images that nobody hashed


class Origin(Protocol):
    """Where examples come from, and what vouches for them."""

    @property
    def store(self) -> Store: ...

    @property
    def title(self) -> str:
        """Dataset and subset, for messages."""

    def digest(self) -> str:
        """sha256 over what vouches for tars and rows, as they lie there now."""

    def facts(self) -> dict[str, Any]:
        """JSON for a model card: place, subset, split, and each tar with its sha256."""


@dataclass(frozen=True, slots=True)
class Side:
    """Which images and texts of a stored sample make an example.

    suffix: of the key. images, texts: from the role in the example to the stored role.
    """

    suffix: str
    images: Mapping[str, str]
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Slices:
    """Where an image of each sample lies in its tar. sizes: 0 where a sample lacks it. hashes: start of its sha256; 0
    where nobody hashed it. tar: number of each one's file, where images of one sample lie in several.
    """

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    tar: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Stored samples of one subset, in the order of their tars.

    tars: paths below the store's root; tar: number of each sample's. groups: dictionary-encoded.
    images: by stored role. texts: by stored role, large strings.
    """

    tars: Sequence[str]
    tar: NDArray[np.int32]
    keys: pa.Array
    groups: pa.Array
    images: Mapping[str, Slices]
    texts: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(self.tar)


@dataclass(frozen=True, slots=True)
class Part:
    """A dataset of a mixture.

    digest: as it was when it was opened. copies: how often it is repeated. local: whether groups are counted anew in
    each tar, so that those of one name in another dataset are others.
    """

    origin: Origin
    columns: Columns
    sides: Sequence[Side]
    digest: str
    copies: int = 1
    local: bool = False

    def __len__(self) -> int:
        return len(self.columns) * len(self.sides) * self.copies

    def example(self, number: int) -> Example:
        """The example of a number: repetitions follow each other; in each, the sides of a sample are adjacent."""
        columns = self.columns
        copy, rest = divmod(number, len(columns) * len(self.sides))
        row, side = rest // len(self.sides), self.sides[rest % len(self.sides)]
        tar, key = columns.tars[columns.tar[row]], columns.keys[row].as_py()
        images = {}
        for role, stored in side.images.items():
            slices = columns.images[stored]
            if slices.sizes[row]:
                sha256 = f"{int(slices.hashes[row]):016x}"
                lies_in = tar if slices.tar is None else columns.tars[slices.tar[row]]
                images[role] = Place(lies_in, int(slices.offsets[row]), int(slices.sizes[row]), sha256)
        root = self.origin.store.root
        return Example(
            key=f"{key}{side.suffix}",
            group=columns.groups[row].as_py(),
            images=images,
            texts={role: columns.texts[stored][row].as_py() for role, stored in side.texts.items()},
            where=f"{root}/{tar}: {key}",
            dataset=root,
            copy=copy,
        )

    def names(self) -> set[str]:
        """What no other dataset of a run may have: groups, or tars where groups are `local`."""
        if self.local:
            return {f"{self.origin.store.root}/{tar}" for tar in self.columns.tars}
        return set(pc.unique(self.columns.groups).to_pylist())

    def lacking(self, role: str) -> str | None:
        """Key of the first sample without a role of `Side`; None where all have it."""
        for side in self.sides:
            if role in side.images:
                without = np.flatnonzero(self.columns.images[side.images[role]].sizes == 0)
                if len(without):
                    return str(self.columns.keys[int(without[0])].as_py())
            elif role not in side.texts:
                return str(self.columns.keys[0].as_py())
        return None


@dataclass(slots=True)
class Gathered:
    """Columns that grow tar by tar.

    images: roles of stored images; texts: of stored texts.
    """

    images: Sequence[str]
    texts: Sequence[str]
    _tars: list[str] = field(default_factory=list)
    _counts: list[int] = field(default_factory=list)
    _arrays: dict[str, list[pa.Array]] = field(default_factory=dict)
    _slices: dict[str, list[NDArray[np.uint64]]] = field(default_factory=dict)

    def add(
        self,
        tar: str,
        keys: pa.Array,
        groups: pa.Array | None,
        texts: Mapping[str, pa.Array],
        slices: Mapping[str, NDArray[np.uint64]],
    ) -> None:
        """The samples of a tar, n of them.

        Args:
            keys, groups, texts: strings, (n,) each; no groups of any tar where each sample is its own.
            slices: by stored role, (n, 3) uint64: offset, size and the start of the sha256.
        """
        self._tars.append(tar)
        self._counts.append(len(keys))
        named = {"key": keys, **texts} if groups is None else {"key": keys, "group": groups, **texts}
        for name, array in named.items():
            self._arrays.setdefault(name, []).append(array.cast(pa.large_string()))
        for role in self.images:
            self._slices.setdefault(role, []).append(slices[role])

    def columns(self) -> Columns:
        """All that was added, at least one tar; it is gone from here, as it is large."""
        joined = {name: pa.concat_arrays(self._arrays.pop(name)) for name in [*self._arrays]}
        slices = {role: np.concatenate(self._slices.pop(role)) for role in [*self._slices]}
        if "group" not in joined:
            own = pa.array(np.arange(len(joined["key"]), dtype=np.int32))
            joined["group"] = pa.DictionaryArray.from_arrays(own, joined["key"])
        return Columns(
            tars=self._tars,
            tar=np.repeat(np.arange(len(self._tars), dtype=np.int32), self._counts),
            keys=joined["key"],
            groups=joined["group"].dictionary_encode(),  # does nothing to what is encoded
            images={
                role: Slices(found[:, 0].astype(np.int64), found[:, 1].astype(np.int32), found[:, 2].copy())
                for role, found in slices.items()
            },
            texts={name: joined[name] for name in self.texts},
        )
