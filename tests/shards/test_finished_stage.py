"""A finished stage as a later one reads it: what is no such stage, or damaged, is named with its remedy."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.generators.finished_stage import write_index
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.read import index_batches, index_rows
from twinset.shards.storage.store import Store
from twinset.stages.job import Job


@pytest.fixture
def earlier(tmp_path: Path) -> FinishedStage:
    """A stage of three rows."""
    return write_index(pa.table({"key": ["a", "b", "c"], "caption_id": ["1", "1", "2"]}), tmp_path, "words", 2)


def test_a_finished_stage_is_read_in_columns(earlier: FinishedStage) -> None:
    assert earlier.read(["caption_id"]).to_pydict() == {"caption_id": ["1", "1", "2"]}
    assert [len(batch) for batch in earlier.batches(["key"])] == [3]


def test_chosen_rows_are_read_batch_by_batch(tmp_path: Path) -> None:
    table = pa.table({"key": [str(number) for number in range(10)], "caption_id": ["1"] * 10})
    earlier = write_index(table, tmp_path, "words", 10, row_group=3)
    chosen = np.isin(np.arange(10), [0, 7, 8, 9])
    batches = list(earlier.batches(["key"], chosen))
    assert [key for batch in batches for key in batch["key"].to_pylist()] == ["0", "7", "8", "9"]
    assert all(len(batch) for batch in batches) and list(earlier.batches(["key"], np.zeros(10, bool))) == []
    assert earlier.columns()[:2] == ["key", "caption_id"]


def test_a_stage_of_another_kind_is_refused(earlier: FinishedStage) -> None:
    for read in (earlier.read, lambda columns: next(earlier.batches(columns))):
        with pytest.raises(WrongUse, match=r"/words: its index has no column .image_id.; name a stage"):
            read(["key", "image_id"])


@pytest.mark.parametrize("part", [slice(None), slice(4, 40), slice(-8, -4)], ids=["all", "a page", "the footer's size"])
def test_a_damaged_index_says_what_to_remove(earlier: FinishedStage, tmp_path: Path, part: slice) -> None:
    path, store = tmp_path / "words/_meta/index.parquet", Store(str(tmp_path))
    damaged = bytearray(path.read_bytes())
    damaged[part] = bytes(len(damaged[part]))
    path.write_bytes(damaged)
    for read in (
        lambda: FinishedStage(store, "words").read(["key"]),
        lambda: list(index_rows(store, "words", ["key"])),
        lambda: list(index_batches(store, "words", ["key"])),
    ):
        with pytest.raises(
            WrongUse, match=r"index\.parquet: cannot be read .*; remove words/_meta/index\.json and run"
        ):
            read()


@pytest.mark.parametrize("place", ["./a\0b", "s3://words", "odd://words"])
def test_what_can_be_no_folder_of_a_stage_is_refused(tmp_path: Path, place: str) -> None:
    job = Job(parse_recipe({"name": "x"}), Store(str(tmp_path)))
    with pytest.raises(WrongUse, match=r"names no stage; write its folder or URL"):
        job.earlier(place)
