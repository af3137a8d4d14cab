"""Features and scores that a model gave, on disk: an SQLite file for each model and runtime class."""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

from twinset.contracts.errors import BuildFailed
from twinset.contracts.locations import cache_folder
from twinset.models.encoders.contract import Floats
from twinset.shards.storage.sqlite_file import connect, explained, transaction

_KINDS = {b"i": "images", b"p": "pairs", b"t": "texts"}  # by the first byte of a name
_AT_A_TIME = 500  # names of one query
_TABLE = "CREATE TABLE features (name BLOB PRIMARY KEY, value BLOB NOT NULL, seconds REAL NOT NULL)"
_VERSION = 1  # of the table; its `user_version`
_CHECK = 8  # bytes after a feature: digest of its name and values
# SQLite keeps it in a file of its own that nobody else sees: a benchmark of millions of images does not fill memory.
_USED = "CREATE TEMP TABLE used (name BLOB PRIMARY KEY) WITHOUT ROWID"


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


@contextmanager
def kept_if_interrupted() -> Iterator[None]:
    """Ctrl-C while features are computed gets a note: the same command goes on with those that are on disk."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note("run the same command again: it goes on with the features that it has")
        raise


def _check(name: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(name + value, digest_size=_CHECK).digest()


class FeatureStore:
    """What one model gave. A model's name here is a digest of model, transform and runtime class.

    What `keep` was given is on disk when it returns; what a killed process left half-written is rolled back by the next
    one. The rollback journal (no write-ahead log) also works on network file systems with locks. Several processes may
    use one file: the first feature of a name stays.

    A feature lies with a digest of its name and values: SQLite notices a damaged page of its tree, but not damaged
    values, which would be scores as good as any.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self.path = folder / f"{model}.sqlite"
        self._lock = threading.Lock()
        with self._explained():
            self._database = connect(self.path, "name another folder with --cache, on a disk that can be written")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._prepare_table()
            self._database.execute(_USED)

    def _prepare_table(self) -> None:
        """Make the table where the file is new; raises `BuildFailed` for one of another version of twinset."""
        if self._database.execute("PRAGMA user_version").fetchone() == (_VERSION,):
            return
        # In one transaction: another process that starts sees a file without a table, or one with its version.
        with transaction(self._database):
            (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if not tables:
                self._database.execute(_TABLE)
                self._database.execute(f"PRAGMA user_version = {_VERSION}")
        if tables and version != _VERSION:
            self._database.close()
            raise BuildFailed(
                f"{self.path}: features as another version of twinset keeps them; name another folder with --cache, or "
                "remove it: what it holds is encoded again"
            )

    def missing(self, names: Iterable[bytes]) -> list[bytes]:
        """Names that are not kept, in order, each once."""
        wanted = list(dict.fromkeys(names))
        kept = {name for (name,) in self._rows("name", wanted)}
        return [name for name in wanted if name not in kept]

    def find(self, names: Iterable[bytes]) -> dict[bytes, Floats]:
        """Features that are kept, by name."""
        wanted = list(dict.fromkeys(names))
        with self._lock, self._explained():
            self._database.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((name,) for name in wanted))
        return {name: self._values(name, kept) for name, kept in self._rows("name, value", wanted)}

    def _values(self, name: bytes, kept: object) -> Floats:
        # SQLite holds any type in any column.
        if not isinstance(kept, bytes) or kept[-_CHECK:] != _check(name, kept[:-_CHECK]):
            raise BuildFailed(f"{self.path}: a feature in it is damaged; remove it: what it holds is encoded again")
        return np.frombuffer(kept[:-_CHECK], np.float32)

    def start_count(self) -> None:
        """Forget what `find` was asked for."""
        with self._lock, self._explained():
            self._database.execute("DELETE FROM used")

    def seconds(self) -> float:
        """Seconds that the network took, in whatever run, for all that `find` was asked for since `start_count`."""
        query = "SELECT coalesce(sum(seconds), 0) FROM features JOIN used USING (name)"
        with self._lock, self._explained():
            return float(self._database.execute(query).fetchone()[0])

    def counted(self) -> dict[str, int]:
        """How many images, texts and pairs `find` was asked for since `start_count`, without those that are 0."""
        query = "SELECT substr(name, 1, 1), count(*) FROM used GROUP BY 1 ORDER BY 1"
        with self._lock, self._explained():
            return {_KINDS[kind]: count for kind, count in self._database.execute(query)}

    def keep(self, names: Sequence[bytes], values: Floats, seconds: float) -> None:
        """Keep features.

        Args:
            values: shape (names, d).
            seconds: that they took together.
        """
        each = seconds / max(len(names), 1)
        kept = ((name, value.tobytes()) for name, value in zip(names, values, strict=True))
        rows = [(name, value + _check(name, value), each) for name, value in kept]
        with self._lock, self._explained(), transaction(self._database):
            self._database.executemany("INSERT OR IGNORE INTO features VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _rows(self, columns: str, names: list[bytes]) -> Iterator[tuple[bytes, ...]]:
        for start in range(0, len(names), _AT_A_TIME):
            some = names[start : start + _AT_A_TIME]
            query = f"SELECT {columns} FROM features WHERE name IN ({','.join('?' * len(some))})"
            with self._lock, self._explained():
                found = self._database.execute(query, some).fetchall()
            yield from found

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.path, "features", "remove it: what it holds is encoded again")
