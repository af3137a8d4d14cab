"""Shards and the index: every candidate is accounted for, and what goes wrong leaves no receipt."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.stages.drawn_sources import MADE, MEANWHILE, PASSES, Apart, Greys
from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Drop, Score
from twinset.contracts.stage import runtime_class
from twinset.shards.read import read_samples
from twinset.shards.records import read_index_record
from twinset.shards.rows import KEPT, REJECTED, BadVerdict, read_rows
from twinset.shards.storage import layout
from twinset.stages.dataset import drop_duplicates
from twinset.stages.finish import is_indexed, write_index
from twinset.stages.job import refuse_mixed_runtimes
from twinset.stages.overview import verify_stage

SCENES = [("a", 1, 2), ("a", 1, 3), ("a", 2, 3), ("gone", 1, 2), ("b", 7, 8), ("b", 7, 200)]


@pytest.fixture
def built(planned_build: Any) -> Any:
    """A shard of which each filter and the source reject something."""
    build = planned_build(SCENES, 6, ["test-dark", "test-apart"])
    build.make_all()
    return build


def test_every_candidate_gets_a_row_in_plan_order_and_is_in_the_index_once(built: Any, tmp_path: Path) -> None:
    with built.store.open(layout.rows("eq-x", 0)) as stream:
        rows = read_rows(stream)
    assert [row.key for row in rows] == [candidate.key for candidate in built.candidates(0)]
    assert [(row.verdict, row.filter, row.reason) for row in rows] == [
        (REJECTED, "test-apart", "near"),
        (KEPT, "", ""),
        (REJECTED, "test-apart", "near"),
        (REJECTED, "generator", "missing-media"),
        (REJECTED, "test-apart", "near"),
        (REJECTED, "test-dark", "bright"),
    ]
    assert [json.loads(row.identity) for row in rows] == [[*scene] for scene in SCENES]
    assert [row.words["caption1"] for row in rows] == [f"grey {scene[2]}" for scene in SCENES]
    assert rows[5].score == 200.0 and rows[0].score == 1.0 and rows[3].detail == "absent"
    (kept,) = read_samples(built.store, "eq-x")
    assert kept.json.scores == {"grey0": 1.0, "grey1": 3.0}
    receipt = built.state().done[0]
    assert (receipt.planned, receipt.kept, receipt.missing) == (6, 1, {"gone": None})
    assert receipt.rejected == {"bright": 1, "missing-media": 1, "near": 3}

    write_index(built.store, built.state(), "pair")
    record: Any = read_index_record(built.store, "eq-x")
    assert (record.planned, record.kept, record.rows) == (6, 1, 1)
    meta = tmp_path / "out/eq-x/_meta"
    (indexed,) = pq.read_table(meta / "index.parquet").to_pylist()
    assert (indexed["key"], indexed["tar"], indexed["caption1"]) == (rows[1].key, "test/00000.tar", "grey 3")
    assert indexed["image0_sha256"] == rows[1].images["image0"] and indexed["sources"][0]["path"] == "a.mp4"
    rejections = pq.read_table(meta / "rejections.parquet").to_pylist()
    assert [(rejection["key"], rejection["reason"], rejection["score"]) for rejection in rejections] == [
        (row.key, row.reason, row.score) for row in rows if row.verdict == REJECTED
    ]


@pytest.mark.parametrize("name", ["index.parquet", "rejections.parquet", "sizes.json", "index.json"])
def test_a_file_of_the_index_that_is_gone_is_written_again(built: Any, files_below: Any, name: str) -> None:
    write_index(built.store, built.state(), "pair")
    whole = files_below(Path(built.store.root))
    built.store.remove(f"eq-x/_meta/{name}")
    assert not is_indexed(built.store, built.state())
    write_index(built.store, built.state(), "pair")
    assert files_below(Path(built.store.root)) == whole and is_indexed(built.store, built.state())


def test_a_generator_that_breaks_order_or_count_is_refused(planned_build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    build = planned_build(SCENES, 6)
    made = Greys.make
    for part, error in ((slice(None, None, -1), AssertionError), (slice(-1), ValueError)):
        monkeypatch.setattr(Greys, "make", lambda self, asked, part=part: iter([*made(self, asked)][part]))
        with pytest.raises(error):
            build.make(0)
    assert build.store.names("eq-x/_meta/receipts") == build.store.names("eq-x/test") == []


@pytest.mark.parametrize("publishes", [0, 1, 2])
def test_a_crash_between_any_two_steps_of_publishing_leaves_no_receipt(
    tmp_path: Path, planned_build: Any, files_below: Any, monkeypatch: pytest.MonkeyPatch, publishes: int
) -> None:
    whole = planned_build(SCENES, 6, out="whole")
    whole.make(0)
    planned_build(SCENES, 6, ["test-apart"], seed=1).make(0)
    build = planned_build(SCENES, 6)
    store = build.store
    move_in, calls = store.move_in, 0

    def crashes(spooled: Path, path: str) -> None:
        nonlocal calls
        if calls == publishes:
            raise OSError(5, "Input/output error")
        calls += 1
        move_in(spooled, path)

    monkeypatch.setattr(store, "move_in", crashes)
    with pytest.raises(OSError, match="Input/output error"):
        build.make(0)
    monkeypatch.undo()
    assert 0 not in build.state().done
    assert not list((tmp_path / "out" / "_spool").glob("*"))
    build.make_all()
    store.sweep()
    whole.store.sweep()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


def test_a_verdict_that_no_build_can_use_is_named(planned_build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    build = planned_build(SCENES, 6, ["test-apart"])
    for verdict, problem in (
        ((), "a tuple, not a Keep, Drop or Score; return one"),
        (Drop("dull", 1.0), r"reason 'dull' is not explained; add it to Apart\.reasons"),
        (Score("grey", math.nan), "a score of nan; give"),
    ):
        monkeypatch.setattr(Apart, "judge", lambda _, pairs, verdict=verdict: [verdict] * len(pairs))
        with pytest.raises(BadVerdict, match=rf"^filter 'test-apart' of twinset-tests 1\.0: eq-x-[a-z0-9]+: {problem}"):
            build.make(0)
    assert build.store.names("eq-x/_meta/receipts") == []


GROUPS = ("a", "a", "b", "b", "c", "d", "e", "f", "f", "g")
GROUPED = [(video, 1, number) for number, video in enumerate(GROUPS, 2)]


def test_a_shard_begins_again_with_half_of_it(
    tmp_path: Path, planned_build: Any, files_below: Any, trouble: Any
) -> None:
    build = planned_build(GROUPED, 5, micro_batch=4)
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
    planned_build(GROUPED, 5, out="plain", micro_batch=1).make(0)
    for file in ("eq-x/test/00000.tar", "eq-x/_meta/rows/00000.parquet"):
        assert files_below(tmp_path / "out")[file] == files_below(tmp_path / "plain")[file]


def test_where_no_sample_fits_the_shard_fails(tmp_path: Path, planned_build: Any, trouble: Any) -> None:
    build = planned_build(GROUPED, 5, micro_batch=8)
    trouble("b", "memory 0")
    with pytest.raises(BuildFailed, match=r"one sample at a time \(tried to allocate 2 GiB\).*--workers 1"):
        build.make(0)
    assert build.state().todo == [0, 1] and not list((tmp_path / "out" / "_spool").glob("*"))


REPEATED = [("a", 1, 2), ("b", 1, 2), ("gone", 5, 6)]  # b repeats what a asks


def late(build: Any, shard: int, meanwhile: Callable[[], None]) -> Any:
    """Make a shard by a worker that was taken for dead, while others do something."""

    def once() -> None:
        MEANWHILE.clear()
        meanwhile()

    MEANWHILE.append(once)
    return build.make(shard)


def test_a_late_worker_does_not_bring_a_duplicate_back(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    build = planned_build(REPEATED, 1)
    finished: dict[str, bytes] = {}

    def others_finish() -> None:
        build.make_all()
        assert drop_duplicates(build.store, {"eq-x": build.indexed()}) == ({"eq-x"}, {})
        build.indexed()
        finished.update(files_below(tmp_path / "out"))

    # The sample of the greater identity goes.
    dropped = int(build.candidates(0)[0].identity < build.candidates(1)[0].identity)
    receipt = late(build, dropped, others_finish)
    after = files_below(tmp_path / "out")
    build.store.sweep()
    assert {name for name in after if after[name] != finished.get(name)} == set()
    assert receipt == build.state().done[dropped] and receipt.duplicates
    assert list(verify_stage(build.store, build.state())) == []


def test_a_late_worker_of_an_older_plan_publishes_nothing(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    older = planned_build(REPEATED, 1)
    finished: dict[str, bytes] = {}

    def others_build_anew() -> None:
        planned_build([("c", 7, 8), ("d", 9, 10)], 1, seed=1).make_all()
        finished.update(files_below(tmp_path / "out"))

    with pytest.raises(BuildFailed, match=r"eq-x: shard 00001 is not written.*planned again meanwhile"):
        late(older, 1, others_build_anew)
    assert files_below(tmp_path / "out") == finished

    with pytest.raises(BuildFailed, match="planned again meanwhile"):
        late(planned_build(REPEATED, 1), 0, lambda: older.store.remove("eq-x/_meta/stage.json"))


def test_a_late_worker_that_lacked_media_replaces_no_shard(planned_build: Any, media: Path) -> None:
    build = planned_build(REPEATED, 1)

    def media_appears() -> None:
        (media / "gone.mp4").write_bytes(b"here")
        build.make_all()

    assert late(build, 2, media_appears).kept == 1
    assert build.state().todo == []
