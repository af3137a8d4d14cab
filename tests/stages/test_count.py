"""`count`: how many candidates of a source are planned."""

import os
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.recipe import InvalidRecipe, Recipe
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare
from twinset.stages.run_here import build_here
from twinset.stages.status import state_of

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
    assert "eq-x: all candidates are asked for instead of 6; shards with the same candidates stay" in caplog.text
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
