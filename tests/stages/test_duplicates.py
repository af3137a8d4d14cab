"""Duplicates among subsets: one stays, whatever the order in which subsets are built and whatever they are called.

`count`: how many candidates of a source are planned.
"""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.recipe import InvalidRecipe, Recipe
from twinset.shards.read import read_samples
from twinset.shards.rows import DUPLICATE, read_rows
from twinset.shards.storage.store import Store
from twinset.stages.duplicates import drop_duplicates
from twinset.stages.finalise import disagreeing, forget, remove_leftovers
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.run_here import build_here
from twinset.stages.status import state_of
from twinset.stages.verify import verify_stage

# (1, 2) is in every subset and twice in eq-a; (4, 3) mirrors (3, 4), which asks the same question.
SUBSETS = {
    "eq-a": [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)],
    "eq-b": [("a", 1, 2), ("b", 4, 3), ("c", 7, 8)],
    "eq-c": [("d", 1, 2), ("e", 9, 10)],
}


def finish(builds: dict[str, Any]) -> None:
    """What the flow does after making: drop duplicates, make again what must be, until nothing changes."""
    for _ in range(3):
        states = {name: one.indexed() for name, one in builds.items()}
        _, again = drop_duplicates(next(iter(builds.values())).store, states)
        for name, numbers in again.items():
            forget(builds[name].store, name, numbers)
            builds[name].make_all()
        if not again:
            for one in builds.values():
                one.indexed()
            return
    raise AssertionError("finalising does not settle")


def questions(build: Any) -> list[tuple[str, str]]:
    return [(one.texts["caption0"], one.texts["caption1"]) for one in read_samples(build.store, build.name)]


def build_all(planned_build: Any, out: Path, names: tuple[str, ...], backwards: bool = False) -> dict[str, Any]:
    store, builds = Store(str(out)), {}
    for name in names:
        builds[name] = planned_build(store, name, SUBSETS[name], shard_size=1)
        for number in builds[name].state().todo[:: -1 if backwards else 1]:
            builds[name].make(number)
    return builds


def test_one_of_each_question_stays(tmp_path: Path, planned_build: Any) -> None:
    builds = build_all(planned_build, tmp_path / "out", tuple(SUBSETS))
    finish(builds)
    asked = [frozenset(one) for build in builds.values() for one in questions(build)]
    assert len(asked) == len(set(asked)) == 5
    assert ("grey 3", "grey 4") in questions(builds["eq-a"])
    for build in builds.values():
        state = build.state()
        assert state.todo == [] and disagreeing(build.store, state)[1] == []
        assert list(verify_stage(build.store, state)) == []
        counts = state.counts()
        assert counts["planned"] == counts["kept"] + sum(counts["rejected"].values())
    # The eq-b shard that held nothing else has no tar any more.
    assert builds["eq-b"].state().counts() == {
        "planned": 3,
        "kept": 1,
        "rejected": {DUPLICATE: 2},
        "shards": 3,
        "excluded": {},
    }
    assert builds["eq-b"].store.names("eq-b/test") == ["00002.tar"]


def test_the_same_bytes_whatever_is_built_first_and_finished_in_between(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    expected: dict[str, bytes] = {}
    for number, order in enumerate(itertools.permutations(SUBSETS)):
        out = tmp_path / f"out{number}"
        builds: dict[str, Any] = {}
        for name in order:
            builds |= build_all(planned_build, out, (name,), backwards=number % 2 == 1)
            finish(builds)
        expected = expected or files_below(out)
        assert files_below(out) == expected, order


def test_a_duplicate_whose_twin_is_gone_is_made_again(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    builds = build_all(planned_build, tmp_path / "out", ("eq-a", "eq-b", "eq-c"))
    finish(builds)
    # eq-a is planned anew, without what eq-b and eq-c shared with it.
    builds["eq-a"] = planned_build(builds["eq-a"].store, "eq-a", [("a", 5, 6)], shard_size=1)
    builds["eq-a"].make_all()
    remove_leftovers(builds["eq-a"].store, builds["eq-a"].state())
    finish(builds)
    assert questions(builds["eq-b"]) == [("grey 1", "grey 2"), ("grey 4", "grey 3"), ("grey 7", "grey 8")]
    assert questions(builds["eq-c"]) == [("grey 9", "grey 10")]
    with builds["eq-c"].store.open("eq-c/_meta/rows/00000.parquet") as stream:
        kept = builds["eq-b"].candidates(0)[0].key
        assert read_rows(stream)[0].detail == f"same as {kept}"

    other = build_all(planned_build, tmp_path / "other", ("eq-c", "eq-b"))
    other["eq-a"] = planned_build(other["eq-b"].store, "eq-a", [("a", 5, 6)], shard_size=1)
    other["eq-a"].make_all()
    finish(other)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "other")


def test_finalising_twice_changes_nothing(tmp_path: Path, planned_build: Any) -> None:
    builds = build_all(planned_build, tmp_path / "out", tuple(SUBSETS))
    finish(builds)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.tar")}
    finish(builds)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.tar")} == times


def test_a_crash_while_dropping_duplicates_ends_in_the_same_bytes(
    tmp_path: Path, planned_build: Any, files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = build_all(planned_build, tmp_path / "whole", tuple(SUBSETS))
    finish(whole)
    for published in range(6):
        out = tmp_path / f"out{published}"
        builds = build_all(planned_build, out, tuple(SUBSETS))
        store = builds["eq-a"].store
        move_in, left = store.move_in, [None] * published

        def crashes(spooled: Path, path: str, move_in: Any = move_in, left: list[None] = left) -> None:
            if not left:
                raise OSError(5, "Input/output error")
            left.pop()
            move_in(spooled, path)

        with monkeypatch.context() as patch:
            patch.setattr(store, "move_in", crashes)
            with pytest.raises(OSError, match="Input/output error"):
                finish(builds)
        for build in builds.values():
            build.make_all()
        finish(builds)
        assert files_below(out) == files_below(tmp_path / "whole")


def test_receipts_of_duplicates_name_the_sample_that_stays(tmp_path: Path, planned_build: Any) -> None:
    builds = build_all(planned_build, tmp_path / "out", tuple(SUBSETS))
    finish(builds)
    receipts = builds["eq-c"].state().done
    first = builds["eq-a"].candidates(0)[0].key  # of ["a",1,2], which comes before ["c",1,2] and ["d",1,2]
    assert receipts[0].duplicates == {builds["eq-c"].candidates(0)[0].key: first}


def test_which_one_stays_does_not_depend_on_the_names_of_subsets(tmp_path: Path, planned_build: Any) -> None:
    kept = []
    for names in (("eq-x", "eq-y"), ("eq-y", "eq-x")):
        store = Store(str(tmp_path / names[0]))
        builds = {name: planned_build(store, name, [(video, 1, 2)], 1) for name, video in zip(names, "db", strict=True)}
        for build in builds.values():
            build.make_all()
        finish(builds)
        kept.append([sample.json.group for build in builds.values() for sample in read_samples(store, build.name)])
    assert kept == [["b"], ["b"]]


def test_the_same_record_in_two_subsets_stays_in_the_first_by_name(tmp_path: Path, planned_build: Any) -> None:
    store = Store(str(tmp_path / "out"))
    builds = {name: planned_build(store, name, [("a", 1, 2)], 1) for name in ("eq-y", "eq-x")}
    for build in builds.values():
        build.make_all()
    finish(builds)
    assert [len(questions(builds[name])) for name in ("eq-x", "eq-y")] == [1, 0]


SCENES = [(video, number, 100 + step) for number, video in enumerate("abcd") for step in range(3)]


@pytest.fixture
def recipe(greys: Any) -> Any:
    """Four videos of three scenes, a shard a video; the function takes the count."""
    subset = greys("eq-x", SCENES, 3)
    return lambda count=None: recipe_of({"eq-x": {**subset, "count": count}})


def _planned(recipe: Recipe) -> int:
    counts: int = twinset.plan(recipe)["subsets"]["eq-x"]["planned"]
    return counts


def test_a_count_takes_the_first_candidates(recipe: Any) -> None:
    assert [_planned(recipe(count)) for count in (None, 5, 50)] == [12, 5, 12]


def test_candidates_are_counted_by_kind(tmp_path: Path) -> None:
    lines = ["caption,negative_caption,type,subtype", "a cat,a dog,replace,obj", "a cup,a red cup,add,att"]
    (tmp_path / "some.csv").write_text("\n".join([*lines, "a hat,a tie,replace,obj"]))
    source = {"kind": "replayed-negatives", "captions": str(tmp_path / "some.csv")}
    recipe = recipe_of({"negatives": {"source": source}})
    for out in (None, str(tmp_path / "out"), str(tmp_path / "out")):
        counts = twinset.plan(recipe, out)["subsets"]["negatives"]
        assert (counts["planned"], counts["kinds"]) == (3, {"replace_obj": 2, "add_att": 1})


def test_asking_for_more_keeps_the_shards_that_are_done(
    recipe: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(str(tmp_path / "out"))
    few = prepare(Job(recipe(6), store), "eq-x")
    for number in range(few.shards):
        make_shard(store.root, "eq-x", number)
    all_of_them = prepare(Job(recipe(), store), "eq-x")
    assert "eq-x: the recipe, its inputs or a version changed; it is planned again: shards of the same" in caplog.text
    assert (few.planned, few.shards, all_of_them.planned, all_of_them.shards) == (6, 2, 12, 4)
    assert all_of_them.content == few.content and all_of_them.plan != few.plan
    assert state_of(store, "eq-x").todo == [2, 3]
    fewer = prepare(Job(recipe(3), store), "eq-x")
    assert fewer.planned == 3 and state_of(store, "eq-x").todo == []


def test_more_and_fewer_are_the_same_dataset_as_from_the_start(
    recipe: Any, tmp_path: Path, files_below: Any, no_cards: Any
) -> None:
    for count in (6, 12, 9):
        build_here(recipe(count), str(tmp_path / "grown"))
        build_here(recipe(count), str(tmp_path / f"fresh{count}"))
        assert files_below(tmp_path / "grown") == files_below(tmp_path / f"fresh{count}")


def test_a_shard_that_a_count_cut_short_is_made_again(recipe: Any, tmp_path: Path, no_cards: Any) -> None:
    build_here(recipe(5), str(tmp_path / "out"))
    whole, cut = (tmp_path / "out/eq-x/test/00000.tar", tmp_path / "out/eq-x/test/00001.tar")
    os.utime(whole, (1, 1))
    before = cut.read_bytes()
    build_here(recipe(6), str(tmp_path / "out"))
    assert cut.read_bytes() != before and whole.stat().st_mtime == 1


@pytest.mark.parametrize("count", [0, -1, "many"])
def test_a_count_that_is_none_is_refused(recipe: Any, count: object) -> None:
    with pytest.raises(InvalidRecipe, match=r"subsets\.eq-x\.count"):
        recipe(count)
