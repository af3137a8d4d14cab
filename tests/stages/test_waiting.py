"""Stages that wait for people: what is built meanwhile, what is said, and how a build goes on once they decided."""

import json
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE
from twinset.contracts.errors import DecisionsMissing
from twinset.contracts.recipe import Recipe
from twinset.stages.build import build_here

pytestmark = pytest.mark.usefixtures("no_cards")
DECISIONS = {"red": "keep", "pen": "drop", "green": "keep", "tree": "keep"}


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.json"
    path.write_text("{}")
    return path


@pytest.fixture
def recipe(tmp_path: Path, answers: Path, greys: Any) -> Recipe:
    """words -> judged -> said, which waits for people; words -> all-said and greys, which do not."""
    lines = tmp_path / "lines.json"
    lines.write_text(json.dumps(["red pen", "green tree"]))
    judged = {"kind": "test-longer", "words": "words", "answers": str(answers)}
    subsets = {
        name: {"source": {"kind": "test-said", "words": words}, "encoding": {"format": "png"}}
        for name, words in (("said", "judged"), ("all-said", "words"))
    }
    return recipe_of(
        {**subsets, "greys": greys("greys", [("a", 1, 2)])},
        {
            "words": {"source": {"kind": "test-words", "annotations": str(lines)}},
            "judged": {"source": judged, "shard_size": 1},
        },
    )


def test_what_waits_for_nobody_is_built_and_the_same_build_goes_on(
    recipe: Any, answers: Path, tmp_path: Path, files_below: Any, no_cards: Any
) -> None:
    out = str(tmp_path / "out")
    with pytest.raises(DecisionsMissing) as waits:
        build_here(recipe, out)
    asked = f"ask people with: twinset review {out}; then run the same build again"
    assert str(waits.value) == f"judged: 4 of 4 decisions are missing; {asked}"
    assert no_cards == [["all-said", "greys", "all-said and greys"], []]
    found = twinset.status(out)
    assert found["subsets"].keys() == {"all-said", "greys"}
    assert found["stages"]["judged"]["waiting"] == {"missing": 4, "needed": 4}
    planned = twinset.plan(recipe, out)
    assert planned["stages"]["judged"]["state"] == "4 of 4 decisions are missing"
    assert planned["subsets"]["said"]["state"] == "waits for judged"

    answers.write_text(json.dumps(DECISIONS))
    MADE.clear()
    counts = build_here(recipe, out)["subsets"]["said"]
    # All that is said is in all-said too, whose name comes first: what was dropped is not.
    assert (counts["planned"], counts["rejected"]) == (3, {"duplicate": 3})
    assert sorted(MADE) == sorted([*DECISIONS, "red", "green", "tree"])
    build_here(recipe, str(tmp_path / "fresh"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


def test_a_changed_decision_makes_its_shard_again_and_a_withdrawn_one_is_waited_for(
    recipe: Any, answers: Path, tmp_path: Path, files_below: Any
) -> None:
    out = str(tmp_path / "out")
    answers.write_text(json.dumps(DECISIONS))
    build_here(recipe, out)
    MADE.clear()
    answers.write_text(json.dumps({**DECISIONS, "pen": "keep"}))
    build_here(recipe, out)
    assert MADE[0] == "pen" and MADE.count("pen") == 2 and len(MADE) == 1 + 4  # its decision, and all pairs once
    build_here(recipe, str(tmp_path / "fresh"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")

    answers.write_text(json.dumps({word: said for word, said in DECISIONS.items() if word != "pen"}))
    with pytest.raises(DecisionsMissing, match="judged: 1 of 4 decisions is missing"):
        build_here(recipe, out)
