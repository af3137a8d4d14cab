"""Plans on disk: groups whole, splits apart, one row group a shard, the same digests every time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from twinset.contracts.candidate import Candidate, arrow_schema, from_row, to_row
from twinset.contracts.errors import WrongUse
from twinset.generators.video.frame_pairs import FramePairCandidate
from twinset.shards.plan import (
    LARGEST_GROUP,
    PlanSummary,
    plan_digest,
    plan_file,
    read_shards,
    read_slice,
    shards_of,
    slice_digest,
    write_plan,
)
from twinset.stages.plan import check_plan


def candidate(key: str, group: str, split: str = "test", caption: str = "a dog") -> FramePairCandidate:
    return FramePairCandidate(
        key=key,
        group=group,
        split=split,
        captions0=(caption, "second"),
        captions1=(),
        video=group,
        at0=0.1,
        at1=2.0,
        change="step",
        provenance="{}",
    )


def planned(groups: Sequence[tuple[str, int, str]]) -> list[Candidate]:
    return [
        candidate(f"k-{g}-{n}", g, split, "hostile \0 'é' 红\n") for g, count, split in groups for n in range(count)
    ]


def written(candidates: Sequence[Candidate], folder: Path, shard_size: int = 3) -> PlanSummary:
    (folder / "plan").mkdir(parents=True)
    return write_plan(iter(candidates), FramePairCandidate, shard_size, folder / "plan")


def slice_at(folder: Path, shard: int) -> list[Candidate]:
    file, row_group = plan_file(shard)
    with (folder / "plan" / file).open("rb") as stream:
        return read_slice(stream, row_group, FramePairCandidate)


def test_groups_are_never_split_splits_never_mixed_and_shards_fill_up() -> None:
    sizes = [("a", 2, "test"), ("b", 2, "test"), ("c", 7, "test"), ("d", 1, "test"), ("e", 1, "test")]
    shards = list(shards_of(iter(planned(sizes)), 3))
    assert [[one.group for one in shard] for shard in shards] == [list("aabb"), list("ccccccc"), list("de")]
    sizes = [("a", 2, "train"), ("b", 1, "val"), ("c", 2, "train"), ("d", 3, "val"), ("e", 1, "train")]
    shards = list(shards_of(iter(planned(sizes)), 3))
    assert [{one.split for one in shard} for shard in shards] == [{"train"}, {"train"}, {"val"}]
    assert [one.group for one in shards[2]] == list("bddd")


def test_candidates_come_back_as_they_were_a_row_group_a_shard(tmp_path: Path) -> None:
    candidates = planned([("a", 4, "test"), ("b", 2, "val"), ("c", 3, "test")])
    summary = written(candidates, tmp_path)
    shards = [slice_at(tmp_path, number) for number in range(len(summary.shards))]
    assert {one.key: one for shard in shards for one in shard} == {one.key: one for one in candidates}
    assert summary.planned == 9 and from_row(FramePairCandidate, to_row(candidates[0])) == candidates[0]
    assert arrow_schema(FramePairCandidate).names[:3] == ["key", "group", "split"]
    assert pq.ParquetFile(tmp_path / "plan/00000.parquet").num_row_groups == 3
    with (tmp_path / "plan/shards.parquet").open("rb") as stream:
        assert tuple(read_shards(stream, "shards.parquet")) == summary.shards
    for shard, known in zip(shards, summary.shards, strict=True):
        assert known.slice == slice_digest(shard) and known.planned == len(shard)
        assert {one.split for one in shard} == {known.split}
    assert plan_digest(summary.shards) == summary.digest


def test_a_key_that_is_planned_twice_and_a_group_in_two_places_are_refused(tmp_path: Path) -> None:
    whole = [*planned([("a", 2, "test"), ("b", 9, "test")]), candidate("k-val", "a", "val")]
    check_plan(tmp_path / "whole/plan", written(whole, tmp_path / "whole"), "ann.json")
    twice = "k-a-1 is planned twice, in group a and in group c; correct"
    apart = r"the candidates of group a do not follow each other \(k-late comes"
    for further, problem in ((candidate("k-a-1", "c"), twice), (candidate("k-late", "a"), apart)):
        folder = tmp_path / further.key
        with pytest.raises(WrongUse, match=rf"ann\.json: {problem}"):
            check_plan(folder / "plan", written([*whole, further], folder), "ann.json")


def test_a_group_that_no_worker_could_hold_is_refused_while_it_is_read(tmp_path: Path) -> None:
    read = 0

    def endless() -> Iterator[Candidate]:
        nonlocal read
        yield from planned([("small", 5, "test")])
        for read in range(10 * LARGEST_GROUP):
            yield candidate(f"k{read}", "huge")

    with pytest.raises(WrongUse, match=r"ann\.json: 'huge' has more than 20,000 candidates.* correct or remove them"):
        write_plan(endless(), FramePairCandidate, 3, tmp_path, "ann.json")
    assert read == LARGEST_GROUP and not (tmp_path / "shards.parquet").exists()
    whole = (candidate(f"k{n}", f"g{n // LARGEST_GROUP}") for n in range(2 * LARGEST_GROUP))
    assert [len(shard) for shard in shards_of(whole, 1)] == [LARGEST_GROUP, LARGEST_GROUP]
