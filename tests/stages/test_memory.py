"""When memory runs out a shard begins again with half the micro-batch, and its receipt says so."""

from pathlib import Path
from typing import Any

import pytest

from tests.stages.drawn_sources import MADE, PASSES
from twinset.contracts.errors import BuildFailed
from twinset.contracts.stage import runtime_class
from twinset.shards.rows import read_rows
from twinset.shards.storage.store import Store
from twinset.stages.job import refuse_mixed_runtimes

GROUPS = ("a", "a", "b", "b", "c", "d", "e", "f", "f", "g")
SCENES = [(video, 1, number) for number, video in enumerate(GROUPS, 2)]


@pytest.fixture(autouse=True)
def another_video(media: Path) -> None:
    (media / "g.mp4").write_bytes(b"g" * 100)


def test_a_micro_batch_takes_several_groups_and_splits_none(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 10, micro_batch=4)
    receipt = build.make(0)
    # Groups of 2, 2; 1, 1, 1, 2; 1 pairs, of which as many come together as make 4 or more.
    assert PASSES == [4, 5, 1]
    assert (receipt.micro_batch, receipt.requested_runtime, receipt.kept) == (4, "", 10)
    assert receipt.runtime == receipt.machine == runtime_class("cpu", threads=1, micro_batch=4)


def test_a_shard_begins_again_with_half_of_it(
    tmp_path: Path, planned_build: Any, files_below: Any, trouble: Any
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 5, micro_batch=4)
    trouble("c", "memory 1")  # the fifth pair needs a micro-batch of 1
    receipt = build.make(0)
    assert PASSES == [4, 1, 2, 2, 1, 2, 2, 1] and MADE[-5:] == list("aabbc")
    assert receipt.micro_batch == 1 and receipt.runtime == runtime_class("cpu", 1, 1)
    assert receipt.requested_runtime == receipt.machine == runtime_class("cpu", 1, 4)
    # The next shard begins with all of it, and the build can end.
    whole = build.make(1)
    assert whole.micro_batch == 4 and receipt.machine == whole.machine
    refuse_mixed_runtimes("OUT/eq-x", {receipt.machine, whole.machine})
    # Nothing of the first tries is left: a micro-batch of 1 from the start gives the same samples.
    with build.store.open("eq-x/_meta/rows/00000.parquet") as stream:
        assert [row.key for row in read_rows(stream)] == [candidate.key for candidate in build.candidates(0)]
    planned_build(Store(str(tmp_path / "plain")), "eq-x", SCENES, 5, micro_batch=1).make(0)
    for file in ("eq-x/test/00000.tar", "eq-x/_meta/rows/00000.parquet"):
        assert files_below(tmp_path / "out")[file] == files_below(tmp_path / "plain")[file]


def test_where_not_even_one_sample_fits_the_shard_fails_with_what_to_do(
    tmp_path: Path, planned_build: Any, trouble: Any
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 5, micro_batch=8)
    trouble("b", "memory 0")
    with pytest.raises(BuildFailed, match=r"one sample at a time \(tried to allocate 2 GiB\).*--workers 1"):
        build.make(0)
    assert build.state().todo == [0, 1] and not list((tmp_path / "out" / "_spool").glob("*"))
