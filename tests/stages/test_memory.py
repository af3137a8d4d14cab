"""When memory runs out a shard begins again with half the micro-batch, and its receipt says so."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from manifests.candidate import Candidate
from manifests.errors import BuildFailed
from manifests.stage import runtime_class
from shards.contracts import Batching, OutOfMemory
from shards.kinds.kind import Sample
from shards.kinds.samples import Rejected
from shards.rows import read_rows
from shards.storage.store import Store
from stages.make import make_shard
from stages.maker import Workshop
from stages.prepare import refuse_mixed_runtimes

SCENES = [(video, 1, number) for number, video in enumerate("aabbababba", 2)]


@dataclass
class Hungry:
    """Makes what another generator makes, but no more than ``most`` candidates in one pass."""

    inner: Any
    most: int
    micro_batch: int
    threads: int = 1
    asked: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def device(self) -> str:
        return "cpu"

    def with_micro_batch(self, micro_batch: int) -> Hungry:
        other = copy.copy(self)
        other.micro_batch = micro_batch
        return other

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Sample | Rejected]:
        for start in range(0, len(candidates), self.micro_batch):
            batch = candidates[start : start + self.micro_batch]
            self.asked.append(len(batch))
            if len(batch) > self.most:
                raise OutOfMemory("tried to allocate 2 GiB")
            yield from self.inner.make(batch)


def made(build: Any, most: int, micro_batch: int, number: int = 0) -> tuple[Any, Hungry]:
    hungry = Hungry(build.generator, most, micro_batch)
    shop = Workshop(build.shop.subset, hungry, ()).on_this_machine()
    candidates = build.candidates(number)
    return make_shard(build.store, build.stage, build.planned[number], candidates, shop), hungry


def test_a_micro_batch_takes_several_groups_and_splits_none(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=10)
    receipt, hungry = made(build, 99, 4)
    # Groups of 2, 2; 1, 1, 1, 2; 1 pairs, of which as many come together as make 4 or more.
    assert hungry.asked == [4, 4, 1, 1]
    assert (receipt.micro_batch, receipt.asked, receipt.kept) == (4, "", 10)
    assert receipt.runtime == receipt.machine == runtime_class(True, "cpu", 1, 4)


def test_a_shard_begins_again_with_half_of_it(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=5)
    receipt, hungry = made(build, 1, 4)
    assert hungry.asked[:3] == [4, 2, 1] and set(hungry.asked[2:]) == {1} and hungry.micro_batch == 4
    assert receipt.micro_batch == 1 and receipt.runtime == runtime_class(True, "cpu", 1, 1)
    assert receipt.asked == receipt.machine == runtime_class(True, "cpu", 1, 4)
    # Nothing of the first tries is left: a micro-batch of 1 from the start gives the same samples.
    with build.store.open("eq-x/_meta/rows/00000.parquet") as stream:
        assert [row.key for row in read_rows(stream)] == [candidate.key for candidate in build.candidates(0)]
    plain = planned_build(Store(str(tmp_path / "plain")), "eq-x", SCENES, shard_size=5)
    made(plain, 1, 1)
    tar = "eq-x/test/00000.tar"
    assert files_below(tmp_path / "out")[tar] == files_below(tmp_path / "plain")[tar]


def test_the_next_shard_begins_with_all_of_it_and_the_build_can_end(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=5)
    halved, _ = made(build, 2, 4, 0)
    whole, _ = made(build, 4, 4, 1)
    assert halved.runtime != whole.runtime and halved.machine == whole.machine
    refuse_mixed_runtimes("OUT/eq-x", {halved.machine, whole.machine})
    assert build.state().todo == []
    with pytest.raises(BuildFailed, match="another device, threads or micro_batch"):
        refuse_mixed_runtimes("OUT/eq-x", {halved.machine, runtime_class(True, "cpu", 1, 2)})


def test_where_not_even_one_sample_fits_the_shard_fails_with_what_to_do(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=5)
    with pytest.raises(BuildFailed, match=r"one sample at a time \(tried to allocate 2 GiB\).*--workers 1"):
        made(build, 0, 8)
    assert build.state().todo == [0, 1] and not list((tmp_path / "out" / "_spool").glob("*"))


def test_other_generators_have_no_micro_batch(tmp_path: Path, planned_build: Any) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=5)
    receipt = build.make(0)
    assert (receipt.runtime, receipt.asked, receipt.micro_batch) == ("any", "", 0)
    assert not isinstance(build.generator, Batching)
    assert build.shop.on_this_machine() == build.shop
