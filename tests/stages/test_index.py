"""The index of a subset: everything planned is in it once, kept or rejected."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from twinset.shards.storage.store import Store
from twinset.stages.index import is_indexed, summarise, write_index

SCENES = [("a", 1, 2), ("a", 1, 3), ("gone", 1, 2), ("gone", 1, 9), ("b", 7, 8), ("b", 7, 200), ("b", 7, 9)]
FILES = ("index.parquet", "rejections.parquet", "sizes.json", "index.json")


@pytest.fixture
def built(tmp_path: Path, planned_build: Any) -> Any:
    """Shards of ``a`` and ``gone`` (two kept, two rejected) and ``b`` (one rejected by each filter, one kept)."""
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 2, ["test-dark", "test-apart"])
    build.make_all()
    return build


def files(build: Any) -> dict[str, bytes]:
    return {name: build.store.read(f"eq-x/_meta/{name}") for name in FILES}


def test_the_index_holds_every_candidate_once(built: Any, tmp_path: Path) -> None:
    record = write_index(built.store, built.state(), "pair")
    assert (record.planned, record.kept, record.rows) == (7, 2, 2)
    meta = tmp_path / "out/eq-x/_meta"
    index = pq.read_table(meta / "index.parquet").to_pylist()
    assert [row["identity"] for row in index] == ['["a",1,3]', '["b",7,9]']
    assert [row["tar"] for row in index] == ["test/00000.tar", "test/00002.tar"]
    assert [row["caption1"] for row in index] == ["grey 3", "grey 9"]
    assert index[0]["sources"][0]["path"] == "a.mp4" and len(index[0]["image0_sha256"]) == 64
    rejections = pq.read_table(meta / "rejections.parquet").to_pylist()
    assert {row["key"] for row in (*index, *rejections)} == {
        one.key for number in range(3) for one in built.candidates(number)
    }
    assert [(row["identity"], row["filter"], row["reason"]) for row in rejections] == [
        ('["a",1,2]', "test-apart", "near"),
        ('["gone",1,2]', "generator", "missing-media"),
        ('["gone",1,9]', "generator", "missing-media"),
        ('["b",7,8]', "test-apart", "near"),
        ('["b",7,200]', "test-dark", "bright"),
    ]
    assert rejections[4]["score"] == 200.0 and rejections[1]["caption0"] == "grey 1"
    tars = {"test/00000.tar": 1, "test/00002.tar": 1}
    assert json.loads((meta / "sizes.json").read_bytes()) == tars
    summary = summarise(built.store, built.state())
    assert (summary.planned, summary.kept, summary.kept_by_split) == (7, 2, {"test": 2})
    assert summary.by_filter["test-apart"] == {"near": 2} and summary.images == ("image0", "image1")
    assert summary.tars == tars and summary.bytes == sum(built.store.size(f"eq-x/{tar}") for tar in tars)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_index_that_is_gone_is_written_again(built: Any, name: str) -> None:
    write_index(built.store, built.state(), "pair")
    first = files(built)
    built.store.remove(f"eq-x/_meta/{name}")
    assert not is_indexed(built.store, built.state())
    write_index(built.store, built.state(), "pair")
    assert files(built) == first and is_indexed(built.store, built.state())
