"""The ledger of receipts: nothing is read twice, what changed is read again, and nothing depends on it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from twinset.contracts.receipt import parse_receipt
from twinset.shards.ledger import read_receipts
from twinset.shards.storage.store import Store
from twinset.stages.finish import disagreeing
from twinset.stages.job import state_of

SCENES = [("a", 1, 2), ("b", 3, 4), ("gone", 5, 6), ("c", 7, 8)]


class CountingStore(Store):
    """Counts what is asked of a store, by operation and folder."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.asked: Counter[tuple[str, str]] = Counter()

    def read(self, path: str) -> bytes:
        self.asked["read", path.rsplit("/", 2)[-2]] += 1
        return super().read(path)

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        self.asked["open", path.rsplit("/", 2)[-2]] += 1
        with super().open(path) as stream:
            yield stream

    def listing(self, folder: str) -> Any:
        self.asked["listing", folder.rsplit("/", 1)[-1]] += 1
        return super().listing(folder)


@pytest.fixture
def built(tmp_path: Path, planned_build: Any) -> Any:
    """Four shards, hashed and in the ledger."""
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 1)
    build.make_all()
    disagreeing(build.store, build.state())
    return build


def test_receipts_are_read_and_files_are_hashed_once(built: Any, tmp_path: Path) -> None:
    store = CountingStore(str(tmp_path / "out"))
    receipts, unreadable = read_receipts(store, "eq-x")
    assert unreadable == [] and list(receipts) == [0, 1, 2, 3]
    assert store.asked == {("listing", "receipts"): 1, ("open", "log"): 1}
    for number, receipt in zip(receipts, receipts.receipts(), strict=True):
        assert parse_receipt(store.read(f"eq-x/_meta/receipts/{number:05d}.json")) == receipt == receipts[number]
    tar = tmp_path / "out/eq-x/test/00001.tar"
    tar.write_bytes(tar.read_bytes())  # replaced: it is hashed again, and it alone
    state = state_of(store, "eq-x")
    store.asked.clear()
    assert disagreeing(store, state)[1] == [] and store.asked == {("open", "test"): 1}
