"""Stages of tables: made shard by shard or at once from earlier ones, and read by later stages.

Some wait for people: what is built meanwhile, and how a build goes on once they decided.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE
from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import DecisionsMissing
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.job import Job

LINES = ["a word here", "  ", "words are here", "no", ""]


def test_the_index_holds_the_rows_in_plan_order_and_later_stages_read_it(tmp_path: Path, files_below: Any) -> None:
    """words -> longest, which is made at once -> again."""
    lines, out = tmp_path / "lines.json", tmp_path / "out"
    lines.write_text(json.dumps(LINES))
    words = {"source": {"kind": "test-words", "annotations": str(lines)}, "shard_size": 2}
    longest = {"source": {"kind": "test-longest", "words": "words"}}
    again = {"source": {"kind": "test-longer", "words": "longest", "least": 5}}
    recipe = recipe_of({}, {"words": words, "longest": longest, "again": again})
    made = build_here(recipe, str(out))["stages"]
    counts = {"planned": 5, "kept": 3, "rejected": {"no-words": 2}, "shards": 3, "excluded": {}}
    assert made["words"] == counts
    counts = {"planned": 3, "kept": 3, "rejected": {}, "shards": 0, "excluded": {"short": 3}}
    assert made["longest"] == counts and made["again"]["kept"] == 1
    assert Job(recipe, Store(str(out))).earlier("words").read(["key", "word", "length"]).to_pylist() == [
        {"key": sample_key("words", number), "word": word, "length": len(word)}
        for number, line in enumerate(LINES)
        for word in line.split()
    ]
    rows = pq.read_table(out / "_stages/longest/_meta/index.parquet").to_pylist()
    assert [(row["word"], row["length"], row["key"]) for row in rows] == [
        (word, len(word), sample_key("longest", word)) for word in ("word", "here", "words")
    ]
    rejections = pq.read_table(out / "_stages/words/_meta/rejections.parquet").to_pylist()
    assert [(row["identity"], row["detail"]) for row in rejections] == [("[1]", "'  '"), ("[4]", "''")]
    whole = files_below(out)
    build_here(recipe, str(out))
    assert files_below(out) == whole
    assert not any(stage["problems"] for stage in twinset.verify(out)["stages"].values())


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
    status = twinset.status(out)
    assert status["subsets"].keys() == {"all-said", "greys"}
    assert status["stages"]["judged"]["waiting"] == {"missing": 4, "needed": 4}
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

    answers.write_text(json.dumps({word: answer for word, answer in DECISIONS.items() if word != "pen"}))
    with pytest.raises(DecisionsMissing, match="judged: 1 of 4 decisions is missing"):
        build_here(recipe, out)
