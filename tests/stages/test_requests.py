"""What a build costs on an object store: some requests a shard while it is made, and none a shard once it is done."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.counted_store import counted_requests
from tests.stages.conftest import recipe_of
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.overview import status

FEW, MANY = 20, 40

#: Its rows of the plan are read; stage record and receipt are looked at after the making; tar, rows, receipt and log
#: are written; the receipt is read; rows and tar are hashed; rows go into the index.
A_SHARD = 11
DONE = 23  # of a whole build of one subset with nothing to do, whatever its shards

pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture(autouse=True)
def empty_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("twinset.shards.storage.claim.BEAT", 1e6)  # signs of life of a slow build are requests too
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def requests_of(greys: Any, out: str, shards: int) -> tuple[int, int, int]:
    """Requests of a build, of the same build with nothing to do, and of a look at it."""
    recipe = recipe_of({"eq-x": greys("eq-x", [(f"v{n}", 2 * n, 2 * n + 1) for n in range(shards)], 1)})
    found = []
    for _ in range(2):
        with counted_requests() as counts:
            assert build_here(recipe, out, 1)["subsets"]["eq-x"]["kept"] == shards
        found.append(counts.total())
    with counted_requests() as counts:
        status(Store(out))
    return found[0], found[1], counts.total()


def test_requests_a_shard(greys: Any, tmp_path: Path, media: Path) -> None:
    for number in range(MANY):
        (media / f"v{number}.mp4").write_bytes(b"video")
    few = requests_of(greys, f"memory://{tmp_path.name}-few/out", FEW)
    many = requests_of(greys, f"memory://{tmp_path.name}-many/out", MANY)
    assert many[0] - few[0] == A_SHARD * (MANY - FEW)
    assert few[1] == many[1] <= DONE and few[2] == many[2] <= DONE
