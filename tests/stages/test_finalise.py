"""The end of a stage: what disagrees with its receipt is found, older plans leave nothing behind."""

from pathlib import Path
from typing import Any

import pytest

from twinset.shards.storage.store import Store
from twinset.stages.finalise import disagreeing, forget, remove_leftovers

SCENES = [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)]


@pytest.mark.parametrize("file", ["eq-a/test/00001.tar", "eq-a/_meta/rows/00001.parquet"])
@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_a_tar_or_rows_that_disagree_with_their_receipt_are_found(
    tmp_path: Path, planned_build: Any, file: str, damage: str
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-a", SCENES, 1)
    build.make_all()
    state, path = build.state(), tmp_path / "out" / file
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(whole[:600] + bytes([whole[600] ^ 1]) + whole[601:])
    assert disagreeing(build.store, state)[1] == [1]
    forget(build.store, "eq-a", [1])
    build.make_all()
    assert path.read_bytes() == whole and disagreeing(build.store, build.state())[1] == []


def test_what_an_older_and_longer_plan_left_is_removed_and_nothing_else(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    store = Store(str(tmp_path / "out"))
    older = planned_build(store, "eq-a", [*SCENES, ("d", 30, 31)], shard_size=1, splits={"d": "train"})
    older.make_all()
    (tmp_path / "out/eq-a/_meta/plan/00001.parquet").write_bytes(b"of shards 1000 to 1999")
    newer = planned_build(store, "eq-a", SCENES[:2], shard_size=2)
    newer.make_all()
    mine = tmp_path / "out/eq-a/test/00003.idx"
    mine.write_text("an index that somebody made beside the tars")
    removed = remove_leftovers(store, newer.state())
    assert "eq-a/train/00003.tar" in removed and "eq-a/_meta/plan/00001.parquet" in removed
    assert mine.exists()
    mine.unlink()
    planned_build(Store(str(tmp_path / "fresh")), "eq-a", SCENES[:2], shard_size=2).make_all()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


def test_tars_that_somebody_keeps_beside_the_splits_stay(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-a", SCENES, 1)
    build.make_all()
    backup = tmp_path / "out/eq-a/backup/00000.tar"
    backup.parent.mkdir()
    backup.write_bytes(b"somebody's")
    assert remove_leftovers(build.store, build.state()) == []
    assert backup.exists()


def test_a_split_of_another_name_leaves_no_tar_behind(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    store, scenes = Store(str(tmp_path / "out")), SCENES
    planned_build(store, "eq-a", scenes, shard_size=1).make_all()
    for out in (store, Store(str(tmp_path / "fresh"))):
        renamed = planned_build(out, "eq-a", scenes, shard_size=1, splits=dict.fromkeys("abc", "val"), seed=1)
        renamed.make_all()
        remove_leftovers(out, renamed.state())
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")
    assert store.names("eq-a/test") == []
