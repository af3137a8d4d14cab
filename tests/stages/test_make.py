"""Making one shard: every candidate is accounted for, and whatever goes wrong leaves no receipt."""

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.stages.drawn_sources import Greys
from twinset.shards.rows import KEPT, REJECTED, Row, read_rows
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

SCENES = [("a", 1, 2), ("a", 1, 3), ("a", 2, 3), ("gone", 1, 2), ("b", 7, 8), ("b", 7, 200)]


def rows_of(store: Store, name: str, shard: int) -> list[Row]:
    with store.open(layout.rows(name, shard)) as stream:
        return read_rows(stream)


def samples_of(tar: bytes) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        for member in opened:
            key, _, field = member.name.partition(".")
            file = opened.extractfile(member)
            assert file is not None
            found.setdefault(key, {})[field] = file.read()
    return found


def test_every_candidate_gets_a_row_in_plan_order(tmp_path: Path, planned_build: Any) -> None:
    store = Store(str(tmp_path / "out"))
    build = planned_build(store, "eq-x", SCENES, shard_size=6, filters=["test-dark", "test-apart"])
    receipt = build.make(0)
    rows = rows_of(store, "eq-x", 0)
    assert [row.key for row in rows] == [candidate.key for candidate in build.candidates(0)]
    assert [(row.verdict, row.filter, row.reason) for row in rows] == [
        (REJECTED, "test-apart", "near"),
        (KEPT, "", ""),
        (REJECTED, "test-apart", "near"),
        (REJECTED, "generator", "missing-media"),
        (REJECTED, "test-apart", "near"),
        (REJECTED, "test-dark", "bright"),
    ]
    assert [row.identity for row in rows] == [json.dumps(one, separators=(",", ":")) for one in map(list, SCENES)]
    assert [row.words["caption1"] for row in rows] == [f"grey {scene[2]}" for scene in SCENES]
    assert rows[5].score == 200.0 and rows[0].score == 1.0 and rows[3].detail == "absent"
    assert receipt.planned == 6 == receipt.kept + sum(receipt.rejected.values())
    assert receipt.rejected == {"bright": 1, "missing-media": 1, "near": 3}
    assert receipt.missing == {"gone": None}
    kept = samples_of((tmp_path / "out" / "eq-x/test/00000.tar").read_bytes())
    assert list(kept) == [rows[1].key]
    described = json.loads(kept[rows[1].key]["json"])
    assert described["scores"] == {"grey0": 1.0, "grey1": 3.0}
    assert described["image0"]["sha256"] == rows[1].images["image0"] and rows[1].content


def test_a_generator_that_breaks_the_order_or_the_count_is_refused(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "out"))
    build = planned_build(store, "eq-x", SCENES, shard_size=6)
    made = build.worker.generator.make

    def turned(candidates: Sequence[Any]) -> Iterator[Any]:
        return iter(list(made(candidates))[::-1])

    def fewer(candidates: Sequence[Any]) -> Iterator[Any]:
        return iter(list(made(candidates))[:-1])

    for broken, error in ((turned, AssertionError), (fewer, ValueError)):
        monkeypatch.setattr(Greys, "make", lambda _, candidates, broken=broken: broken(candidates))
        with pytest.raises(error):
            build.make(0)
    assert store.names("eq-x/_meta/receipts") == [] and store.names("eq-x/test") == []


@pytest.mark.parametrize("publishes", [0, 1, 2])
@pytest.mark.parametrize("before", ["nothing", "an older shard"])
def test_a_crash_between_any_two_steps_of_publishing_leaves_no_receipt(
    tmp_path: Path,
    planned_build: Any,
    files_below: Any,
    monkeypatch: pytest.MonkeyPatch,
    publishes: int,
    before: str,
) -> None:
    whole = planned_build(Store(str(tmp_path / "whole")), "eq-x", SCENES, shard_size=6)
    whole.make(0)
    store = Store(str(tmp_path / "out"))
    if before == "an older shard":
        planned_build(store, "eq-x", SCENES, shard_size=6, filters=["test-apart"], seed=1).make(0)
    build = planned_build(store, "eq-x", SCENES, shard_size=6)
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
    # After none, the tar, or tar and rows.
    assert 0 not in build.state().done
    assert not list((tmp_path / "out" / "_spool").glob("*"))
    build.make_all()
    store.sweep()
    Store(whole.store.root).sweep()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


def test_a_kill_leaves_no_finished_shard_without_its_log(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, shard_size=6)
    write, written = Store.write, list[str]()

    def killed(store: Store, path: str, content: bytes) -> None:
        write(store, path, content)
        written.append(path)
        if path == "eq-x/_meta/log/00000.json":
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        build.make(0)
    monkeypatch.undo()
    assert written == ["eq-x/_meta/log/00000.json"] and not build.state().done
    assert build.make(0) == build.state().done[0]
