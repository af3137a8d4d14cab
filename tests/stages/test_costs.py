"""What a build takes: as the shards of another tell it, and in requests to an object store."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import twinset
from tests.stages.conftest import recipe_of
from tests.test_rooms import MODULES, room_of
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.overview import status

pytestmark = pytest.mark.usefixtures("no_cards")
SCENES = [(video, grey, grey + 9) for grey, video in enumerate("abcdef")]


def estimate(recipe: Recipe, out: Path | None = None, like: Path | None = None) -> Any:
    return twinset.plan(recipe, out, like=like)["subsets"]["eq-x"]["estimate"]


def test_the_first_shards_of_a_build_or_of_a_trial_tell_what_all_of_it_takes(greys: Any, tmp_path: Path) -> None:
    def recipe(count: int | None) -> Recipe:
        return recipe_of({"eq-x": {**greys("eq-x", SCENES, 1), "count": count}})

    out = tmp_path / "out"
    assert estimate(recipe(3), out) is None  # nothing tells it
    twinset.build(recipe(3), str(out), workers=1)
    for number, log in enumerate(sorted((out / "eq-x/_meta/log").glob("0*.json"))):
        tally = {"answers": 2, "prompt_tokens": 10, "completion_tokens": 4}
        log.write_text(json.dumps({"gpu": False, "seconds": 2.0 if number else 9.0, **tally}))
    trial = estimate(recipe(None), like=out)
    whole = estimate(recipe(6), out)
    assert whole == trial and (whole["candidates"], whole["shards"], whole["samples"], whole["gpu"]) == (6, 6, 6, False)
    assert whole["seconds"] == 12 and whole["from"] == f"3 candidates in {out}" and whole["cost"] is None
    assert (whole["answers"], whole["prompt_tokens"], whole["completion_tokens"]) == (12, 60, 24)


def test_parquet_is_read_without_threads() -> None:
    """pyarrow's threads abort some interpreters at exit."""
    calls = re.compile(r"\.(?:iter_batches|read_row_group|read_table)\(.*")
    rooms = [path for path in MODULES if room_of(path) in ("shards", "stages")]
    reads = [call for path in rooms for call in calls.findall(path.read_text("utf-8"))]
    assert reads and all("use_threads=False" in call for call in reads)


FEW, MANY = 20, 40
#: Its rows of the plan are read; stage record and receipt are looked at after the making; tar, rows, receipt and log
#: are written; the receipt is read; rows and tar are hashed; rows go into the index.
A_SHARD = 11
DONE = 23  # of a whole build of one subset with nothing to do, whatever its shards
#: A request each. A listing of up to 1,000 names is one, as on S3.
CALLS = ("cat_file", "put_file", "info", "ls", "rm_file", "open")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Calls of ``memory://`` stores."""
    calls: list[str] = []
    within = threading.local()

    def counted(name: str) -> Any:
        call = getattr(MemoryFileSystem, name)

        def request(*arguments: Any, **options: Any) -> Any:
            if getattr(within, "call", ""):  # the library answers one call by others
                return call(*arguments, **options)
            calls.append(name)
            within.call = name
            try:
                return call(*arguments, **options)
            finally:
                within.call = ""

        return request

    for name in CALLS:
        monkeypatch.setattr(MemoryFileSystem, name, counted(name))
    monkeypatch.setattr("twinset.shards.storage.claim.BEAT", 1e6)  # signs of life of a slow build are requests too
    yield calls
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def test_requests_a_shard(greys: Any, tmp_path: Path, media: Path, requests: list[str]) -> None:
    """Of a build, of the same build with nothing to do, and of a look at it."""
    for number in range(MANY):
        (media / f"v{number}.mp4").write_bytes(b"video")

    def counts(shards: int) -> Iterator[int]:
        recipe = recipe_of({"eq-x": greys("eq-x", [(f"v{n}", 2 * n, 2 * n + 1) for n in range(shards)], 1)})
        out = f"memory://{tmp_path.name}-{shards}/out"
        for work in (twinset.build, twinset.build, lambda *_, **__: status(Store(out))):
            requests.clear()
            work(recipe, out, workers=1)
            yield len(requests)

    (few, *few_done), (many, *many_done) = counts(FEW), counts(MANY)
    assert many - few == A_SHARD * (MANY - FEW)
    assert few_done == many_done and max(many_done) <= DONE
