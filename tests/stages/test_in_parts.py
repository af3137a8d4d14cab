"""Builds in parts: steps that a scheduler calls, in any order that the DAG allows."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import Recipe
from twinset.stages.run_here import build_here

pytestmark = pytest.mark.usefixtures("no_cards")
LINES = ["red pen", "a green tree", "blue", "a tall house", "an old car"]


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Recipe]:
    """words -> long -> said; the function takes the least length of what is long."""
    lines = tmp_path / "lines.json"
    lines.write_text(json.dumps(LINES))

    def make(least: int = 4) -> Recipe:
        return recipe_of(
            {"said": {"source": {"kind": "test-said", "words": "long"}, "encoding": {"format": "png"}}},
            {
                "long": {"source": {"kind": "test-longer", "words": "words", "least": least}, "shard_size": 1},
                "words": {"source": {"kind": "test-words", "annotations": str(lines)}, "shard_size": 1},
            },
        )

    return make


def test_steps_in_the_order_of_the_dag_make_what_a_build_makes(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    whole = build_here(recipe(), str(tmp_path / "whole"))
    step = partial(twinset.build, recipe(), tmp_path / "parts", workers=1)
    for stage in ("words", "long", "said"):
        planned = step(stage=stage, plan_only=True)["shards"]
        made = [step(stage=stage, part=f"{part}/3")["made"] for part in (2, 0, 1, 0)]
        assert sum(made) == planned and made[-1] == 0
    assert step(finish=True) == whole
    assert files_below(tmp_path / "parts") == files_below(tmp_path / "whole")


def test_a_stage_whose_shards_are_not_made_is_not_planned_from_nor_finished(recipe: Any, tmp_path: Path) -> None:
    step = partial(twinset.build, recipe(), tmp_path / "out")
    step(stage="words", plan_only=True)
    step(stage="words", part="1/2")
    for later in ({"stage": "long", "plan_only": True}, {"stage": "words", "finish": True}, {"finish": True}):
        with pytest.raises(
            BuildFailed, match=r"words: 2 of 5 shards are not made \(00000, 00001\); make them with --st"
        ):
            step(**later)
    step(stage="words", part="0/1")
    assert step(stage="words", finish=True)["kept"] == len(LINES)


def test_parts_of_another_recipe_are_refused(recipe: Any, tmp_path: Path) -> None:
    step = partial(twinset.build, out=tmp_path / "out")
    for stage in ("words", "long"):
        step(recipe(), stage=stage, plan_only=True)
        step(recipe(), stage=stage, part="0/1")
    for later in ({"stage": "long", "part": "0/1"}, {"stage": "long", "finish": True}):
        with pytest.raises(WrongUse, match=r"long: planned from another recipe, or with other settings \(source\)"):
            step(recipe(least=5), **later)
    step(recipe(least=5), stage="long", plan_only=True)
    assert step(recipe(least=5), stage="long", part="0/1")["made"] > 0
