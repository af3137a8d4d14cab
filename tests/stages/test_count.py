"""`count`: how many candidates of a source are planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from manifests.errors import WrongUse
from manifests.recipe import Recipe, load_recipe
from shards.read import read_samples
from shards.storage.store import Store
from stages.prepare import count_plan, make_one, prepare, state_of


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Four videos of three segments, three pairs each, none of whose media exists; a shard a video."""
    segments = [{"id": n, "segment": [n, n + 1], "sentence": f"step {n}"} for n in range(3)]
    entry = {"subset": "validation", "recipe_type": "1", "annotations": segments}
    (tmp_path / "ann.json").write_text(json.dumps({"database": {f"v{n}": entry for n in range(4)}}))
    source = {"kind": "youcook2", "annotations": "ann.json", "media": "."}
    subsets = {"eq-youcook2": {"source": source, "shard_size": 3}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"name": "counted", "max_missing": 1, "subsets": subsets}))
    return tmp_path / "recipe.yaml"


def _load(recipe: Path, count: int | None) -> Recipe:
    return load_recipe(str(recipe), [] if count is None else [f"subsets.eq-youcook2.count={count}"])


def test_a_count_takes_the_first_candidates(recipe: Path) -> None:
    assert count_plan(_load(recipe, None), "eq-youcook2")["planned"] == 12
    assert count_plan(_load(recipe, 5), "eq-youcook2")["planned"] == 5
    assert count_plan(_load(recipe, 50), "eq-youcook2")["planned"] == 12


def test_asking_for_more_keeps_the_shards_that_are_done(recipe: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "out"))
    few = prepare(store, _load(recipe, 6), "eq-youcook2")
    for number in range(few.shards):
        make_one(store.root, "eq-youcook2", number)
    all_of_them = prepare(store, _load(recipe, None), "eq-youcook2")
    assert (few.planned, few.shards, all_of_them.planned, all_of_them.shards) == (6, 2, 12, 4)
    assert all_of_them.content == few.content and all_of_them.plan != few.plan
    assert state_of(store, _load(recipe, None), "eq-youcook2").todo == [2, 3]
    fewer = prepare(store, _load(recipe, 3), "eq-youcook2")
    assert fewer.planned == 3 and state_of(store, _load(recipe, 3), "eq-youcook2").todo == []
    assert list(read_samples(store, "eq-youcook2")) == []


@pytest.mark.parametrize("count", [0, -1, "many"])
def test_a_count_that_is_none_is_refused(recipe: Path, count: object) -> None:
    with pytest.raises(WrongUse, match=r"subsets\.eq-youcook2\.count"):
        load_recipe(str(recipe), [f"subsets.eq-youcook2.count={count}"])
