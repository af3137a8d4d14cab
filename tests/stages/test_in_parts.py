"""Builds in parts: steps that a scheduler calls, in any order that the DAG allows."""

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.making import in_parts
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


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"part": "0/2"}, "a part is of one stage; add --stage with one of words, long, said"),
        ({"stage": "wrods", "part": "0/2"}, "no stage 'wrods'; did you mean 'words'?"),
        ({"stage": "words", "part": "0/2", "finish": True}, "one of plan-only, part and finish"),
        ({"stage": "words", "part": "2/2"}, "K is 0 to N - 1"),
        ({"stage": "words", "part": "1"}, "write K/N"),
        ({"stage": "long", "part": "0/2"}, "no plan of long; plan it first, with --stage long --plan-only"),
        ({"stage": "said", "plan_only": True}, "no plan of long; plan it first"),
    ],
)
def test_a_step_that_cannot_be_made_is_told_with_its_stage(
    recipe: Any, step: dict[str, Any], words: str, tmp_path: Path
) -> None:
    twinset.build(recipe(), tmp_path / "out", stage="words", plan_only=True)
    with pytest.raises(WrongUse, match=words.replace("?", r"\?")):
        twinset.build(recipe(), tmp_path / "out", **step)


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


def test_a_plan_waits_for_who_builds_and_parts_do_not(
    recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, waits = partial(twinset.build, recipe(), tmp_path / "out"), threading.Event()
    step(stage="words", plan_only=True)
    monkeypatch.setattr(in_parts, "CLAIM_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(in_parts.logger, "warning", lambda *_: waits.set())
    planning = threading.Thread(target=partial(step, stage="words", plan_only=True))
    with Store(str(tmp_path / "out")).for_one_build():
        assert step(stage="words", part="0/1")["made"] == len(LINES)
        planning.start()
        assert waits.wait() and planning.is_alive()
    planning.join()
    assert not planning.is_alive()
