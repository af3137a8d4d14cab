"""The index of a subset: everything planned is in it once, kept or rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from manifests.errors import BuildFailed
from shards.storage import layout
from shards.storage.store import Store
from stages.index import write_index


def _files(root: Path) -> dict[str, bytes]:
    return {
        name: (root / "eq-ag/_meta" / name).read_bytes()
        for name in ("index.parquet", "rejections.parquet", "sizes.json")
    }


def test_the_index_holds_every_candidate_once(small_dataset: Any) -> None:
    summary = write_index(small_dataset.store, "eq-ag")
    assert (summary.planned, summary.kept, summary.shards) == (12, 8, 4)
    assert summary.rejected == {"equal-captions": 1, "missing-media": 3}
    assert summary.by_filter == {"equal-captions": {"equal-captions": 1}, "generator": {"missing-media": 3}}
    assert summary.kept_by_split == {"test": 8}
    meta = small_dataset.root / "eq-ag" / "_meta"
    index = pq.read_table(meta / "index.parquet").to_pylist()
    assert [row["key"] for row in index] == small_dataset.kept["eq-ag"]
    assert [row["tar"] for row in index] == ["test/00000.tar"] * 3 + ["test/00002.tar"] * 3 + ["test/00003.tar"] * 2
    assert index[0]["sources"][0]["path"] == "-Disc_0.mp4"
    rejections = pq.read_table(meta / "rejections.parquet").to_pylist()
    assert [row["reason"] for row in rejections] == ["missing-media"] * 3 + ["equal-captions"]
    assert rejections[-1]["score"] == 1.0 and "-Gone_1" in rejections[0]["detail"]
    sizes = json.loads((meta / "sizes.json").read_bytes())
    assert sizes == summary.tars == {"test/00000.tar": 3, "test/00002.tar": 3, "test/00003.tar": 2}


def test_the_index_has_the_same_bytes_every_time(small_dataset: Any) -> None:
    write_index(small_dataset.store, "eq-ag")
    first = _files(small_dataset.root)
    write_index(Store(f"file://{small_dataset.root}"), "eq-ag")
    assert _files(small_dataset.root) == first


def test_rows_that_disagree_with_their_receipt_are_named(small_dataset: Any) -> None:
    rows = small_dataset.store.read(layout.rows("eq-ag", 1))
    small_dataset.store.write(layout.rows("eq-ag", 0), rows)
    with pytest.raises(BuildFailed, match=r"rows/00000\.parquet.*run the build again"):
        write_index(small_dataset.store, "eq-ag")
    small_dataset.store.remove(layout.rows("eq-ag", 0))
    with pytest.raises(BuildFailed, match=r"rows/00000\.parquet"):
        write_index(small_dataset.store, "eq-ag")
