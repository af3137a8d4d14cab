"""A build over files that were damaged, lost or exchanged since: made again where that is safe, else named."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1), "eq-y": greys("eq-y", [("e", 1, 2), ("f", 9, 9)], 1)})


def test_a_byte_that_flips_is_built_again(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    build_here(recipe, str(tmp_path / "out"))
    whole = files_below(tmp_path / "out")
    for name in [name for name in whole if name.endswith((".tar", "rows/00000.parquet"))]:
        path = tmp_path / "out" / name
        content = bytearray(path.read_bytes())
        content[700] ^= 1
        path.write_bytes(content)
    MADE.clear()
    build_here(recipe, str(tmp_path / "out"))
    assert files_below(tmp_path / "out") == whole and set(MADE) == set("abcdef")


def test_a_damaged_plan_is_named_with_its_remedy(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    out = tmp_path / "out"
    build_here(recipe, str(out))
    whole = files_below(out)
    (out / "eq-x/_meta/plan/00000.parquet").write_bytes(b"half")
    (out / "eq-x/_meta/receipts/00001.json").unlink()
    with pytest.raises(BuildFailed, match=r"plan/00000\.parquet: not the candidates.*remove eq-x/_meta/stage\.json"):
        build_here(recipe, str(out))
    (out / "eq-x/_meta/stage.json").unlink()
    build_here(recipe, str(out))
    assert files_below(out) == whole


@pytest.mark.parametrize("change", [{"facts": {"makes": "pair"}}, {"planned": 99}, {"shards": 1}])
def test_a_stage_record_that_does_not_agree_with_itself_is_planned_again(
    recipe: Any, tmp_path: Path, files_below: Any, change: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    build_here(recipe, str(out))
    whole, record = files_below(out), out / "eq-x/_meta/stage.json"
    record.write_text(json.dumps({**json.loads(record.read_bytes()), **change}))
    build_here(recipe, str(out))
    assert files_below(out) == whole


def test_a_stage_with_the_recipe_of_another_says_what_to_do(recipe: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_here(recipe, str(out))
    recorded = out / "eq-x/_meta/log/recipe.json"
    recorded.write_bytes((out / "eq-y/_meta/log/recipe.json").read_bytes())
    for content, words in (
        (recorded.read_text(), "a recipe without eq-x; run the build of eq-x again"),
        ("[" * 100_000, "cannot be used on this machine"),
        ("{", "damaged (Expecting property"),
    ):
        recorded.write_text(content)
        (problem,) = twinset.status(str(out))["subsets"]["eq-x"]["problems"]
        assert f"eq-x/_meta/log/recipe.json: {words}" in str(problem)
        (problem,) = twinset.verify(str(out))["subsets"]["eq-x"]["problems"]
        assert (problem.code, problem.path) == ("description-changed", "eq-x/_meta/log/recipe.json")
    build_here(recipe, str(out))
    assert twinset.verify(str(out))["subsets"]["eq-x"]["problems"] == []


def test_what_lies_beside_the_tars_is_written_again_when_it_is_gone(
    recipe: Any, tmp_path: Path, files_below: Any
) -> None:
    out = tmp_path / "out"
    build_here(recipe, str(out))
    whole = files_below(out)
    for name in [
        name for name in whole if name.startswith("eq-x/_meta/") and name.endswith((".png", "croissant.json"))
    ]:
        (out / name).unlink()
        build_here(recipe, str(out))
        assert files_below(out) == whole


@pytest.mark.parametrize("place", ["receipts/00001.json", "rows/00001.parquet"])
def test_a_pipe_in_place_of_a_file_is_refused_before_work(recipe: Any, tmp_path: Path, place: str) -> None:
    out = tmp_path / "out"
    build_here(recipe, str(out))
    path = out / "eq-x/_meta" / place
    path.unlink()
    os.mkfifo(path)
    MADE.clear()
    with pytest.raises(WrongUse, match=rf"eq-x/_meta/{place}: a pipe, not a file; remove it and run"):
        build_here(recipe, str(out))
    assert not MADE
    path.unlink()
    build_here(recipe, str(out))
