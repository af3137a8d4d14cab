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
from tests.stages.drawn_sources import MADE, Greys
from tests.stages.drawn_tables import Words
from twinset.cards import describe as describe_module
from twinset.contracts.canonical import digest, sample_key
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.samples import TableRows
from twinset.contracts.recipe import InvalidRecipe
from twinset.contracts.stage import SCHEMA_VERSION, parse_stage
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.run_here import build_here
from twinset.stages.status import state_of

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


def test_files_of_others_are_no_matter(tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any) -> None:
    """... such as those that file managers leave: nothing is described again, and an edited card stays."""
    out = tmp_path / "out"
    build_here(two_recipes(greys)[0], str(out))
    (out / "eq-x/_meta/.DS_Store").write_bytes(b"x")
    (out / "eq-x/_meta/my notes.txt").write_bytes(b"x")
    (out / "eq-x/README.md").write_text("edited")
    whole = files_below(out)
    build_here(two_recipes(greys)[0], str(out))
    assert files_below(out) == whole and no_cards[1:] == [[]]


@pytest.mark.parametrize(
    ("lost", "drawn"), [("README.md", []), ("look.html", []), ("eq-x/README.md", ["eq-x"]), ("empty", ["eq-x"])]
)
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


def test_a_subset_of_an_earlier_version_is_stale_and_left_as_it_is(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    recipe, other = two_recipes(greys)
    build_here(recipe, str(out))
    record, index = out / "eq-x/_meta/stage.json", out / "eq-x/_meta/index.parquet"
    whole = record.read_bytes()
    facts = {**parse_stage("", whole).facts, "schema_version": SCHEMA_VERSION - 1}
    earlier = {**json.loads(whole), "schema_version": SCHEMA_VERSION - 1, "facts": facts, "content": digest(facts)}
    record.write_text(json.dumps(earlier))
    pq.write_table(pq.read_table(index).drop_columns(["licence"]), index)
    assert set(state_of(Store(str(out)), "eq-x").stale.values()) == {"built by another version of twinset"}
    build_here(other, str(out))
    assert no_cards[-2] == ["eq-y"] * 2 and "version of twinset; run their builds again: eq-x" in caplog.text
    build_here(recipe, str(out))
    assert record.read_bytes() == whole and state_of(Store(str(out)), "eq-x").todo == []


def test_a_build_that_is_killed_between_two_cards_goes_on_after_the_first(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_of({name: greys(name, [(name, *SCENES[0][1:])], 1) for name in ("eq-x", "eq-y", "eq-z")})
    build_here(recipe, str(tmp_path / "whole"))
    drawn = list(no_cards[0])
    del no_cards[:-1]
    write = describe_module.describe

    def killed(store: Any, name: str, summary: Any) -> None:
        if name == drawn[len(no_cards[0])] == drawn[1] and not (tmp_path / "twice").exists():
            (tmp_path / "twice").touch()
            raise KeyboardInterrupt
        write(store, name, summary)

    monkeypatch.setattr(describe_module, "describe", killed)
    with pytest.raises(KeyboardInterrupt):
        build_here(recipe, str(tmp_path / "out"))
    build_here(recipe, str(tmp_path / "out"))
    assert no_cards == [drawn, []], "each card once"
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


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


def test_a_table_has_no_tars_and_is_sound(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    build_here(recipe, str(tmp_path / "out"))
    assert [name for name in files_below(tmp_path / "out") if name.endswith(".tar")] == []
    (verdict,) = twinset.verify(str(tmp_path / "out"))["stages"].values()
    assert verdict["problems"] == []
    rows = tmp_path / "out" / HOME / "_meta/rows/00001.parquet"
    content = bytearray(rows.read_bytes())
    content[600] ^= 1
    rows.write_bytes(content)
    (verdict,) = twinset.verify(str(tmp_path / "out"))["stages"].values()
    assert "rows/00001.parquet: sha256" in str(verdict["problems"][0])


def test_damaged_rows_are_made_again(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    build_here(recipe, str(tmp_path / "out"))
    whole = files_below(tmp_path / "out")
    rows = tmp_path / "out" / HOME / "_meta/rows/00001.parquet"
    rows.write_bytes(rows.read_bytes()[::-1])
    MADE.clear()
    build_here(recipe, str(tmp_path / "out"))
    assert LINES[2:4] == MADE and files_below(tmp_path / "out") == whole


def test_the_same_bytes_on_any_number_of_workers(recipe: Any, tmp_path: Path, files_below: Any) -> None:
    for workers in (1, 2, 5):
        build_here(recipe, str(tmp_path / f"{workers}"), workers)
    assert files_below(tmp_path / "1") == files_below(tmp_path / "2") == files_below(tmp_path / "5")


def test_a_published_table_has_a_card(tmp_path: Path, recipe: Any) -> None:
    subset = recipe["words"].model_dump(mode="json")
    counts = build_here(recipe_of({"words": subset}), str(tmp_path / "out"))["subsets"]["words"]
    assert (counts["planned"], counts["kept"]) == (5, 3)
    assert (tmp_path / "out/words/README.md").read_text().startswith("---")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda one: TableRows(one.key, []), r"a candidate of a table gave no row; its generator must reject it"),
        (lambda one: TableRows("other", [{"word": "x"}]), r"the generator answered with other; it must keep the order"),
        (
            lambda one: TableRows(one.key, [{"word": "x", "length": "long"}]),
            r"Could not convert 'long'|tried to convert",
        ),
    ],
)
def test_what_a_table_may_not_give_is_refused(
    recipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any, said: str
) -> None:
    monkeypatch.setattr(Words, "make", lambda self, candidates: map(made, candidates))
    with pytest.raises(BuildFailed, match=said):
        build_here(recipe, str(tmp_path / "out"))
    (counts,) = twinset.status(str(tmp_path / "out"))["stages"].values()
    assert (counts["done"], counts["missing"]) == (0, 3)


def test_filters_of_images_do_not_fit_a_table(recipe: Any) -> None:
    subset = {**recipe["words"].model_dump(mode="json"), "filters": [{"kind": "test-dark"}]}
    with pytest.raises(InvalidRecipe, match="filter test-dark judges images, and a table has none; remove it"):
        recipe_of({}, {"words": subset})


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
