"""Features and scores that a model gave, on disk: a folder for each model and runtime class, an Arrow file a block."""

import hashlib
import logging
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from twinset.contracts.locations import cache_folder
from twinset.models.encoders.contract import Floats
from twinset.shards.storage.whole_file import whole_file

#: name: of `image_name`, `text_name` or `pair_name`; seconds: that the network took for it.
BLOCK = pa.schema([("name", pa.binary()), ("value", pa.list_(pa.float32())), ("seconds", pa.float64())])
BLOCK_SECONDS = 10.0  # of the network: what a process that is killed loses at most
_KINDS = {b"i": "images", b"p": "pairs", b"t": "texts"}  # by the first byte of a name
_LOG = logging.getLogger("twinset")


def default_cache() -> Path:
    """Where features are kept unless another folder is named."""
    return cache_folder() / "features"


def image_name(data: bytes) -> bytes:
    """Name of an image in a store: by the bytes of its file."""
    return b"i" + hashlib.sha256(data).digest()


def text_name(text: str) -> bytes:
    """Name of a text in a store."""
    return b"t" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def pair_name(image: bytes, text: bytes) -> bytes:
    """Name of the score of an image and a text by their names."""
    return b"p" + image[1:] + text[1:]


class FeatureStore:
    """What one model gave; ``model`` is a digest of weights, transform and runtime class.

    A block is named by the digest of its bytes: one that is torn or damaged is removed, and encoded again. Several
    processes may write into one folder; each reads what the others have finished.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder / model
        self._features = dict[bytes, tuple[Floats, float]]()
        self._blocks = set[str]()  # that were read
        self._fresh = list[bytes]()  # names that are in no block yet
        self._fresh_seconds = 0.0
        self.used = set[bytes]()
        self._read_blocks()

    def missing(self, names: Iterable[bytes]) -> list[bytes]:
        """Names that are not kept, in order, each once."""
        self._read_blocks()
        return [name for name in dict.fromkeys(names) if name not in self._features]

    def find(self, names: Iterable[bytes]) -> dict[bytes, Floats]:
        """Features that are kept, by name."""
        wanted = {*names}
        self.used |= wanted
        return {name: self._features[name][0] for name in wanted if name in self._features}

    def counted(self) -> dict[str, float]:
        """How many ``images``, ``texts`` and ``pairs`` `find` was asked for since ``used`` was cleared, and the
        ``seconds`` of the network for them, in whatever run.
        """
        seconds = math.fsum(self._features[name][1] for name in self.used if name in self._features)
        return {**Counter(_KINDS[name[:1]] for name in self.used), "seconds": round(seconds, 3)}

    def keep(self, names: Sequence[bytes], values: Floats, seconds: float) -> None:
        """Keep features, float32 of shape (names, d), which took some seconds together; `flush` has them on disk."""
        each = seconds / max(len(names), 1)
        for name, value in zip(names, values, strict=True):
            if name not in self._features:
                self._features[name] = value, each
                self._fresh.append(name)
        self._fresh_seconds += seconds
        if self._fresh_seconds > BLOCK_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is in no block yet as one."""
        if not self._fresh:
            return
        block = pa.table([self._fresh, *zip(*(self._features[name] for name in self._fresh), strict=True)], BLOCK)
        content = pa.BufferOutputStream()
        with pa.ipc.new_file(content, BLOCK) as writer:
            writer.write_table(block)
        data = content.getvalue()
        with whole_file(self.folder / f"{_digest(data)}.arrow") as unfinished:
            unfinished.write_bytes(data)
        self._fresh, self._fresh_seconds = [], 0.0
        self._read_blocks()

    def _read_blocks(self) -> None:
        """Read blocks that were finished since; their features are mapped from the files, not held in memory."""
        for path in sorted(self.folder.glob("*.arrow")):
            if path.name in self._blocks:
                continue
            with pa.memory_map(str(path)) as file:
                content = file.read_buffer()
            if _digest(content) != path.stem:
                _LOG.warning("%s: is damaged; what it held is encoded again", path)
                path.unlink(missing_ok=True)
                continue
            self._blocks.add(path.name)
            block = pa.ipc.open_file(content).read_all().combine_chunks()
            names, lists, seconds = (column.chunk(0) for column in block.columns)
            values = np.split(np.asarray(lists.values), lists.offsets.to_numpy()[1:-1])
            self._features.update(zip(names.to_pylist(), zip(values, seconds.to_pylist(), strict=True), strict=True))


def _digest(data: pa.Buffer) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
