"""Stages of a recipe: in their order, stale when what they read changed, waiting for people."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE
from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import BuildFailed, DecisionsMissing, WrongUse
from twinset.contracts.recipe import InvalidRecipe, Recipe
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

LINES = ["red pen", "a green tree", "blue"]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(tmp_path: Path, greys: Any) -> Any:
    """words -> long -> said, words -> all-said, and greys, which read nothing; the function takes settings of long."""

    lines = tmp_path / "lines.json"
    lines.write_text(json.dumps(LINES))

    def make(**long: Any) -> Recipe:
        return recipe_of(
            {
                "said": {"source": {"kind": "test-said", "words": "long"}, "encoding": {"format": "png"}},
                "all-said": {"source": {"kind": "test-said", "words": "words"}, "encoding": {"format": "png"}},
                "greys": greys("greys", [("a", 1, 2), ("b", 3, 4)], 1),
            },
            {
                "long": {"source": {"kind": "test-longer", "words": "words", "least": 4, **long}, "shard_size": 1},
                "words": {"source": {"kind": "test-words", "annotations": str(lines)}, "shard_size": 1},
            },
        )

    return make


def kept(out: Path) -> dict[str, int]:
    status = twinset.status(str(out))
    return {name: counts["kept"] for name, counts in {**status["stages"], **status["subsets"]}.items()}


def test_a_stage_is_planned_from_rows_and_made_once(
    recipe: Any, tmp_path: Path, files_below: Any, no_cards: Any
) -> None:
    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}

    made = twinset.build(recipe(), tmp_path / "out")
    before = times()
    MADE.clear()
    assert twinset.build(recipe(), tmp_path / "out") == made
    assert (times(), MADE, no_cards) == (before, [], [["all-said", "greys", "said", "all-said and greys and said"], []])
    # Of six words three have four letters; those are duplicates in all-said, whose subset comes first by name.
    assert made["subsets"]["all-said"] == {"planned": 6, "kept": 6, "rejected": {}, "shards": 1, "excluded": {}}
    assert made["subsets"]["said"]["rejected"] == {"duplicate": 3}
    stages = {"_stages", "all-said", "greys", "said"}
    assert {name.split("/")[0] for name in files_below(tmp_path / "out")} == {*stages, "README.md", "look.html"}
    assert kept(tmp_path / "out") == {"words": 3, "long": 3, "said": 0, "all-said": 6, "greys": 2}
    verdict = twinset.verify(str(tmp_path / "out"))
    assert [stage["problems"] for part in verdict.values() for stage in part.values()] == [[]] * 5


def test_a_changed_stage_makes_stale_what_reads_it(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    twinset.build(recipe(), tmp_path / "out")
    MADE.clear()
    twinset.build(recipe(least=5), tmp_path / "out")
    assert MADE == ["green"] * 2  # in long and in said: not the words, all that is said, or the greys
    twinset.build(recipe(least=5), tmp_path / "fresh")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


def test_no_stage_is_planned_from_a_damaged_index(recipe: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    twinset.build(recipe(), str(out))
    index = out / "_stages/words/_meta/index.parquet"
    whole = index.read_bytes()
    index.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    shutil.rmtree(out / "all-said")
    with pytest.raises(WrongUse, match=r"index.parquet: not the one of .*index.json, .* remove .*index.json and run"):
        twinset.build(recipe(), str(out))
    (out / "_stages/words/_meta/index.json").unlink()
    twinset.build(recipe(), str(out))
    assert index.read_bytes() == whole and kept(out)["all-said"] == 6


def test_built_in_parts_it_is_the_same_dataset(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    """... duplicates among subsets of different builds too."""

    def shards(out: Path) -> dict[str, bytes]:
        return {name: content for name, content in files_below(out).items() if not name.endswith("recipe.json")}

    twinset.build(recipe(), tmp_path / "whole")
    for part in ("said", "all-said", "greys"):  # first the one whose duplicates go
        twinset.build(recipe(), tmp_path / "parts", only=[part])
    assert shards(tmp_path / "parts") == shards(tmp_path / "whole")


def test_a_failing_stage_lets_independent_ones_finish(
    recipe: Any, tmp_path: Path, trouble: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble("a", "raise")
    with monkeypatch.context() as patch:
        patch.setattr("tests.stages.drawn_tables.Longer.make", lambda *_: 1 / 0)
        with pytest.raises(BuildFailed, match=r"1 of 2 shards failed; run .*\n.*greys shard 00000") as caught:
            twinset.build(recipe(), tmp_path / "out")
    assert "long shards 00000, 00001, 00002: ZeroDivisionError: division by zero (" in str(caught.value)
    assert str(caught.value).endswith("not built, because they read a stage that failed or waits: said")
    assert kept(tmp_path / "out") == {"words": 3, "long": 0, "all-said": 6, "greys": 1}
    trouble("a")
    twinset.build(recipe(), tmp_path / "out")
    assert kept(tmp_path / "out") == {"words": 3, "long": 3, "said": 0, "all-said": 6, "greys": 2}


def test_steps_in_the_order_of_the_dag_make_what_a_build_makes(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    """Steps that a scheduler calls, in any order that the DAG allows."""
    whole = twinset.build(recipe(), tmp_path / "whole")
    step = partial(twinset.build, recipe(), tmp_path / "parts", workers=1)
    for stage in ("words", "greys", "long", "said", "all-said"):
        planned = step(stage=stage, plan_only=True)["shards"]
        made = [step(stage=stage, part=f"{part}/3")["made"] for part in (2, 0, 1, 0)]
        assert sum(made) == planned and made[-1] == 0
    assert step(finish=True) == whole
    assert files_below(tmp_path / "parts") == files_below(tmp_path / "whole")


def test_a_stage_whose_shards_are_not_made_is_not_planned_from_nor_finished(recipe: Any, tmp_path: Path) -> None:
    step = partial(twinset.build, recipe(), tmp_path / "out")
    step(stage="words", plan_only=True)
    step(stage="words", part="1/3")
    for later in ({"stage": "long", "plan_only": True}, {"stage": "words", "finish": True}, {"finish": True}):
        with pytest.raises(BuildFailed, match=r"words: 2 of 3 shards are not made \(00000, 00002\); make them with"):
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


def test_a_stage_of_another_build_is_read_by_its_folder(recipe: Any, tmp_path: Path) -> None:
    twinset.build(recipe().only(["long"]), str(tmp_path / "first"))
    folder = str(tmp_path / "first/_stages/long")
    reading = recipe_of({"said": {"source": {"kind": "test-said", "words": folder}, "encoding": {"format": "png"}}})
    assert twinset.build(reading, tmp_path / "out")["subsets"]["said"]["kept"] == 3
    # Named by the folder or by the name: the same samples.
    twinset.build(recipe().only(["said"]), str(tmp_path / "whole"))
    tar = "said/test/00000.tar"
    assert (tmp_path / "out" / tar).read_bytes() == (tmp_path / "whole" / tar).read_bytes()
    (tmp_path / "first/_stages/long/_meta/index.json").unlink()
    with pytest.raises(WrongUse, match="first/_stages/long: not finished; run its build again to the end"):
        twinset.build(reading, tmp_path / "new")


def test_circles_and_unknown_stages_are_refused() -> None:
    for stages, words in (
        ({"x": "y", "y": "x"}, "read each other in a circle: . -> . -> ."),
        ({"x": "z"}, "x reads 'z'"),
    ):
        reading = {name: {"source": {"kind": "test-longer", "words": read}} for name, read in stages.items()}
        with pytest.raises(InvalidRecipe, match=words):
            recipe_of({}, reading)


def test_an_index_holds_the_rows_in_plan_order(tmp_path: Path) -> None:
    texts, lines, out = ["a word here", "  ", "words are here", "no", ""], tmp_path / "lines.json", tmp_path / "out"
    lines.write_text(json.dumps(texts))
    recipe = recipe_of({}, {"words": {"source": {"kind": "test-words", "annotations": str(lines)}, "shard_size": 2}})
    counts = {"planned": 5, "kept": 3, "rejected": {"no-words": 2}, "shards": 3, "excluded": {}}
    assert twinset.build(recipe, str(out))["stages"]["words"] == counts
    assert Job(recipe, Store(str(out))).earlier("words").read(["key", "word", "length"]).to_pylist() == [
        {"key": sample_key("words", number), "word": word, "length": len(word)}
        for number, text in enumerate(texts)
        for word in text.split()
    ]
    rejections = pq.read_table(out / "_stages/words/_meta/rejections.parquet").to_pylist()
    assert [(row["identity"], row["detail"]) for row in rejections] == [("[1]", "'  '"), ("[4]", "''")]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.json"
    path.write_text("{}")
    return path


DECISIONS = {"green": "keep", "tree": "drop", "blue": "keep"}


def test_a_build_that_waits_goes_on(
    recipe: Any, answers: Path, tmp_path: Path, files_below: Any, no_cards: Any
) -> None:
    out, asking = str(tmp_path / "out"), recipe(answers=str(answers))
    with pytest.raises(DecisionsMissing) as waits:
        twinset.build(asking, out)
    remedy = f"ask people with: twinset review {out}; then run the same build again"
    assert str(waits.value) == f"long: 3 of 3 decisions are missing; {remedy}"
    assert no_cards == [["all-said", "greys", "all-said and greys"], []]
    status = twinset.status(out)
    assert status["subsets"].keys() == {"all-said", "greys"}
    assert status["stages"]["long"]["waiting"] == {"missing": 3, "needed": 3}
    planned = twinset.plan(asking, out)
    assert planned["stages"]["long"]["state"] == "3 of 3 decisions are missing"
    assert planned["subsets"]["said"]["state"] == "waits for long"

    answers.write_text(json.dumps(DECISIONS))
    MADE.clear()
    counts = twinset.build(asking, out)["subsets"]["said"]
    # All that is said is in all-said too, whose name comes first: what was dropped is not.
    assert (counts["planned"], counts["rejected"]) == (2, {"duplicate": 2})
    assert sorted(MADE) == sorted([*DECISIONS, "green", "blue"])
    twinset.build(asking, tmp_path / "fresh")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


def test_a_changed_decision_makes_its_shard_again(recipe: Any, answers: Path, tmp_path: Path, files_below: Any) -> None:
    out, asking = str(tmp_path / "out"), recipe(answers=str(answers))
    answers.write_text(json.dumps(DECISIONS))
    twinset.build(asking, out)
    MADE.clear()
    answers.write_text(json.dumps({**DECISIONS, "tree": "keep"}))
    twinset.build(asking, out)
    assert MADE[0] == "tree" and MADE.count("tree") == 2 and len(MADE) == 1 + 3  # its decision, and all pairs once
    twinset.build(asking, tmp_path / "fresh")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")

    answers.write_text(json.dumps({word: answer for word, answer in DECISIONS.items() if word != "tree"}))
    with pytest.raises(DecisionsMissing, match="long: 1 of 3 decisions is missing"):
        twinset.build(asking, out)
