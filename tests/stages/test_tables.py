"""When cards are written again: other shards, or other words.

Stages of tables: rows instead of samples, planned, made, resumed, shown and checked like any other.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Greys
from twinset.contracts.canonical import sample_key
from twinset.contracts.errors import WrongUse
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 7, 8)]


def two_recipes(greys: Any) -> tuple[Any, Any]:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), recipe_of({"eq-y": greys("eq-y", [("d", 50, 60)], 1)})


def test_corrected_words_of_a_source_reach_a_finished_card(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    recipe, other = two_recipes(greys)
    build_here(recipe, str(out))
    whole = files_below(out)
    corrected = {"notes": "* Corrected.\n"}
    monkeypatch.setattr(Greys, "said", lambda self, block, reports=None: corrected.get(block, ""))
    for _ in range(2):
        build_here(recipe, str(out))
        assert no_cards == [["eq-x"] * 2] * 2 + [[]], "described again, once: a card, and the page"
    assert files_below(out) == whole
    for one in (other, recipe, other, recipe):
        build_here(one, str(out))
    assert no_cards[2:] == [["eq-y", "eq-x and eq-y"], []], "two builds of one OUT leave each other's cards and words"


@pytest.mark.parametrize(("lost", "drawn"), [("README.md", []), ("eq-x/README.md", ["eq-x"]), ("empty", ["eq-x"])])
def test_what_is_lost_is_written_again(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any, lost: str, drawn: list[str]
) -> None:
    out = tmp_path / "out"
    build_here(two_recipes(greys)[0], str(out))
    whole = files_below(out)
    if lost == "empty":
        (out / "eq-x/README.md").write_bytes(b"")
    else:
        (out / lost).unlink()
    for _ in range(2):
        build_here(two_recipes(greys)[0], str(out))
        assert files_below(out) == whole and no_cards[1:] == [[*drawn, "eq-x"], []]


LINES = ["red pen", "  ", "a green tree", "blue", ""]
HOME = "_stages/words"


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    path = tmp_path / "lines.json"
    path.write_text(json.dumps(LINES))
    return recipe_of({}, {"words": {"source": {"kind": "test-words", "annotations": str(path)}, "shard_size": 2}})


def test_the_index_holds_the_rows_in_plan_order(recipe: Any, tmp_path: Path) -> None:
    made = build_here(recipe, str(tmp_path / "out"))
    assert (made["subsets"], made["stages"]["words"]["kept"]) == ({}, 3)
    (counts,) = twinset.status(str(tmp_path / "out"))["stages"].values()
    assert (counts["planned"], counts["kept"], counts["rejected"], counts["shards"]) == (5, 3, {"no-words": 2}, 3)
    earlier = Job(recipe, Store(str(tmp_path / "out"))).earlier("words")
    assert earlier.read(["word", "length"]).to_pylist() == [
        {"word": word, "length": len(word)} for line in LINES for word in line.split()
    ]
    assert earlier.read(["key"])["key"].to_pylist() == [
        sample_key("words", number) for number, line in enumerate(LINES) for _ in line.split()
    ]
    (batch,) = earlier.batches(["word"])
    assert batch.num_rows == earlier.record.rows == 6 and earlier.record.kept == 3
    meta = tmp_path / "out" / HOME / "_meta"
    rejections = pq.read_table(meta / "rejections.parquet").to_pylist()
    assert [(row["identity"], row["reason"], row["detail"]) for row in rejections] == [
        ("[1]", "no-words", "'  '"),
        ("[4]", "no-words", "''"),
    ]


def test_an_unfinished_table_is_not_read(recipe: Any, tmp_path: Path) -> None:
    job = Job(recipe, Store(str(tmp_path / "out")))
    with pytest.raises(WrongUse, match=r"out/_stages/words: holds no stage.*build it first"):
        job.earlier("words")
    build_here(recipe, job.store.root)
    (tmp_path / "lines.json").write_text(json.dumps([*LINES, "more"]))
    twinset.plan(recipe, job.store.root)
    with pytest.raises(WrongUse, match="_stages/words: not finished; run its build again to the end"):
        job.earlier("words")
    build_here(recipe, job.store.root)
    index = tmp_path / "out" / HOME / "_meta/index.parquet"
    index.write_bytes(index.read_bytes() + b"more")
    with pytest.raises(WrongUse, match=r"index\.parquet is not the one of _stages/words/_meta/index\.json"):
        job.earlier("words")
    build_here(recipe, job.store.root)
    assert "more" in job.earlier("words").read(["word"])["word"].to_pylist()
