"""Stages without shards: a table that is computed at once from earlier ones."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.canonical import sample_key
from twinset.stages.run_here import build_here

LINES = ["a word here", "words are here", "no"]


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    lines = tmp_path / "lines.json"
    lines.write_text(json.dumps(LINES))
    words = {"source": {"kind": "test-words", "annotations": str(lines)}, "shard_size": 1}
    longest = {"source": {"kind": "test-longest", "words": "words"}}
    again = {"source": {"kind": "test-longer", "words": "longest", "least": 5}}
    return recipe_of({}, {"words": words, "longest": longest, "again": again})


def test_a_table_is_its_index_and_later_stages_read_it(tmp_path: Path, recipe: Any, files_below: Any) -> None:
    out = tmp_path / "out"
    made = build_here(recipe, str(out))["stages"]
    counts = {"planned": 3, "kept": 3, "rejected": {}, "shards": 0, "excluded": {"short": 3}}
    assert made["longest"] == counts and made["again"]["kept"] == 1
    rows = pq.read_table(out / "_stages/longest/_meta/index.parquet").to_pylist()
    assert [(row["word"], row["length"], row["key"]) for row in rows] == [
        (word, len(word), sample_key("longest", word)) for word in ("word", "here", "words")
    ]
    assert {row["licence"] for row in rows} == {"other: mine"}
    whole = files_below(out)
    build_here(recipe, str(out))
    assert files_below(out) == whole
    build_here(recipe, str(tmp_path / "twin"))
    assert files_below(tmp_path / "twin") == whole
    assert not any(stage["problems"] for stage in twinset.verify(out)["stages"].values())
    status = twinset.status(out)["stages"]["longest"]
    assert (status["planned"], status["kept"], status["problems"]) == (3, 3, [])
    assert twinset.plan(recipe, out)["stages"]["longest"]["planned"] == 3


@pytest.mark.parametrize("damage", ["index.parquet", "index.json", "stage.json"])
def test_damage_is_said_and_the_table_computed_again(
    tmp_path: Path, recipe: Any, damage: str, files_below: Any
) -> None:
    out = tmp_path / "out"
    build_here(recipe, str(out))
    whole, file = files_below(out), out / "_stages/longest/_meta" / damage
    if damage == "index.parquet":
        file.write_bytes(file.read_bytes()[:-1])
        assert any("index.parquet" in problem.path for problem in twinset.verify(out)["stages"]["longest"]["problems"])
    else:
        file.unlink()
    build_here(recipe, str(out))
    assert files_below(out) == whole
