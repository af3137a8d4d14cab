"""Receipts are all that says what is done: every way in which one stops holding is noticed and named.

A worker that would make other bytes than planned says so and makes nothing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Dark, Greys
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.receipt import Receipt, parse_receipt
from twinset.shards.plan import SHARD_SCHEMA
from twinset.shards.records import read_planned
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.job import Job
from twinset.stages.make import make_shard
from twinset.stages.plan import prepare

SCENES = [("a", 1, 2), ("b", 3, 4), ("gone", 5, 6), ("c", 7, 8)]
RECEIPT = "eq-x/_meta/receipts/00001.json"


@pytest.fixture
def built(tmp_path: Path, planned_build: Any) -> Any:
    """Four shards of one scene each, all made; the media of shard 2 is missing."""
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=1)
    build.make_all()
    return build


def rewritten(**changes: Any) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        receipt = parse_receipt((out / RECEIPT).read_bytes())
        assert receipt is not None
        (out / RECEIPT).write_bytes(Receipt(**{**receipt.model_dump(), **changes}).to_bytes())

    return change


def cut(path: str) -> Callable[[Path], None]:
    return lambda out: (out / path).write_bytes((out / path).read_bytes()[:-512])  # type: ignore[func-returns-value]


TAR, ROWS = "eq-x/test/00001.tar", "eq-x/_meta/rows/00001.parquet"
SPOILED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "empty": ("cannot be read", lambda out: (out / RECEIPT).write_bytes(b"")),
    "of another shard": ("cannot be read", rewritten(shard=3)),
    "of another split": ("another shard", rewritten(split="train")),
    "of other settings": ("recipe, its inputs or a version", rewritten(content="0" * 32)),
    "of other candidates": ("recipe, its inputs or a version", rewritten(slice="0" * 32)),
    "of media elsewhere": ("has changed", rewritten(missing={"../../elsewhere": 5})),
    "tar gone": ("tar is missing", lambda out: (out / TAR).unlink()),
    "tar cut short": ("tar is missing or has another size", cut(TAR)),
    "rows cut short": ("rows are missing or have another size", cut(ROWS)),
}


@pytest.mark.parametrize("how", SPOILED)
def test_every_way_of_going_stale_is_named_and_mended_by_making_it_again(
    built: Any, tmp_path: Path, files_below: Any, how: str
) -> None:
    before = files_below(tmp_path / "out")
    reason, spoil = SPOILED[how]
    spoil(tmp_path / "out")
    state = built.state()
    assert list(state.stale) == [1] and reason in state.stale[1]
    assert state.todo == [1] and sorted(state.done) == [0, 2, 3]
    built.make_all()
    assert files_below(tmp_path / "out") == before


@pytest.mark.parametrize("row", [{"split": "../../victim"}, {"shard": 7}])
def test_a_plan_of_odd_splits_or_numbers_is_refused(built: Any, tmp_path: Path, row: dict[str, Any]) -> None:
    path = tmp_path / "out/eq-x/_meta/plan/shards.parquet"
    rows = pq.read_table(path).to_pylist()
    rows[1] |= row
    pq.write_table(pa.Table.from_pylist(rows, SHARD_SCHEMA), path)
    with pytest.raises(WrongUse, match=r"shards\.parquet.*stage\.json"):
        read_planned(built.store, "eq-x")


PAIR = [("a", 1, 2), ("b", 1, 3)]
Change = Callable[[pytest.MonkeyPatch, Path], Any]


CHANGES: dict[str, Change] = {
    "generator": lambda patch, _: patch.setattr(Greys, "version", 2),
    "generator; bring": lambda patch, _: patch.setattr(Greys, "weights", lambda self: {"model": "1" * 64}),
    "filters": lambda patch, _: patch.setattr(Dark, "version", 2),
    r"numpy \(\S+ in the plan, 0 here\)": lambda patch, _: patch.setattr(
        "twinset.contracts.stage.version", lambda name: "0"
    ),
}


@pytest.fixture(autouse=True)
def another_process() -> None:
    job._worker_of.cache_clear()


@pytest.mark.parametrize("differs", CHANGES)
def test_what_would_change_the_bytes_is_named(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch, differs: str
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", PAIR, 1, ["test-dark"])
    assert build.stage.facts["generator"]["distribution"] == "twinset-tests 1.0"
    CHANGES[differs](monkeypatch, tmp_path)
    with pytest.raises(BuildFailed, match=f"differs in {differs}"):
        make_shard(build.store.root, "eq-x", 0)
    assert build.state().todo == [0, 1]


def test_shards_of_two_kinds_of_machine_do_not_mix(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", PAIR, 1, micro_batch=4)
    make_shard(build.store.root, "eq-x", 0)
    monkeypatch.setattr(Greys, "runs_on", lambda self: "NVIDIA H100")
    job._worker_of.cache_clear()
    with pytest.raises(BuildFailed, match=r"out/eq-x: made on different types of machine"):
        make_shard(build.store.root, "eq-x", 1)
    allowed = recipe_of({"eq-x": build.job.recipe["eq-x"].model_dump(mode="json")}, allow_mixed_runtimes=True)
    prepare(Job(allowed, build.store), "eq-x")
    assert make_shard(build.store.root, "eq-x", 1).kept == 1
