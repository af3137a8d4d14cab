"""The end of a dataset: one of all duplicates stays, older plans leave nothing behind, cards say what lies there."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Greys
from twinset.contracts.errors import BuildFailed
from twinset.shards.read import read_samples
from twinset.shards.rows import DUPLICATE, read_rows
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.dataset import drop_duplicates
from twinset.stages.finish import disagreeing, forget, remove_leftovers
from twinset.stages.overview import verify_stage

# (1, 2) is in every subset and twice in eq-a; (4, 3) mirrors (3, 4), which asks the same question.
SUBSETS = {
    "eq-a": [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)],
    "eq-b": [("a", 1, 2), ("b", 4, 3), ("c", 7, 8)],
    "eq-c": [("d", 1, 2), ("e", 9, 10)],
}


def finish(builds: dict[str, Any]) -> None:
    """What a build does once all shards are made: drop duplicates, make again what must be, until nothing changes."""
    for _ in range(3):
        states = {name: one.indexed() for name, one in builds.items()}
        _, again = drop_duplicates(next(iter(builds.values())).store, states)
        for name, numbers in again.items():
            forget(builds[name].store, name, numbers)
            builds[name].make_all()
        if not again:
            for one in builds.values():
                one.indexed()
            return
    raise AssertionError("duplicates do not settle")


def questions(build: Any) -> list[tuple[str, str]]:
    return [(one.texts["caption0"], one.texts["caption1"]) for one in read_samples(build.store, build.name)]


def build_all(planned_build: Any, out: Path, names: tuple[str, ...], backwards: bool = False) -> dict[str, Any]:
    store, builds = Store(str(out)), {}
    for name in names:
        builds[name] = planned_build(store, name, SUBSETS[name], shard_size=1)
        for number in builds[name].state().todo[:: -1 if backwards else 1]:
            builds[name].make(number)
    return builds


def test_one_of_each_question_stays_whatever_is_built_first_and_finished_in_between(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    expected: dict[str, bytes] = {}
    for number, order in enumerate([*itertools.permutations(SUBSETS)][::2]):
        out = tmp_path / f"out{number}"
        builds: dict[str, Any] = {}
        for name in order:
            builds |= build_all(planned_build, out, (name,), backwards=number % 2 == 1)
            finish(builds)
        expected = expected or files_below(out)
        assert files_below(out) == expected, order
    asked = [frozenset(one) for build in builds.values() for one in questions(build)]
    assert len(asked) == len(set(asked)) == 5
    assert ("grey 3", "grey 4") in questions(builds["eq-a"])
    for build in builds.values():
        state = build.state()
        assert state.todo == [] and disagreeing(build.store, state)[1] == []
        assert list(verify_stage(build.store, state)) == []
        counts = state.counts()
        assert counts["planned"] == counts["kept"] + sum(counts["rejected"].values())
    counts = builds["eq-b"].state().counts()
    assert (counts["kept"], counts["rejected"]) == (1, {DUPLICATE: 2})
    # The shard that held nothing else has no tar any more.
    assert builds["eq-b"].store.names("eq-b/test") == ["00002.tar"]


def test_a_duplicate_whose_twin_is_gone_is_made_again(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    builds = build_all(planned_build, tmp_path / "out", ("eq-a", "eq-b", "eq-c"))
    finish(builds)
    # eq-a is planned anew, without what eq-b and eq-c shared with it.
    builds["eq-a"] = planned_build(builds["eq-a"].store, "eq-a", [("a", 5, 6)], shard_size=1)
    builds["eq-a"].make_all()
    remove_leftovers(builds["eq-a"].store, builds["eq-a"].state())
    finish(builds)
    assert questions(builds["eq-b"]) == [("grey 1", "grey 2"), ("grey 4", "grey 3"), ("grey 7", "grey 8")]
    assert questions(builds["eq-c"]) == [("grey 9", "grey 10")]
    with builds["eq-c"].store.open("eq-c/_meta/rows/00000.parquet") as stream:
        kept = builds["eq-b"].candidates(0)[0].key
        assert read_rows(stream)[0].detail == f"same as {kept}"


def test_what_an_older_and_longer_plan_left_is_removed_and_nothing_else(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    store = Store(str(tmp_path / "out"))
    older = planned_build(store, "eq-a", [*SUBSETS["eq-a"], ("d", 30, 31)], shard_size=1, splits={"d": "train"})
    older.make_all()
    (tmp_path / "out/eq-a/_meta/plan/00001.parquet").write_bytes(b"of shards 1000 to 1999")
    mine = [tmp_path / "out/eq-a" / name for name in ("test/00003.idx", "backup/00000.tar")]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("somebody's")
    for out in (store, Store(str(tmp_path / "fresh"))):
        newer = planned_build(out, "eq-a", SUBSETS["eq-a"][:2], shard_size=2, splits={"a": "val"})
        newer.make_all()
        remove_leftovers(out, newer.state())
    for path in mine:
        path.unlink()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh") and store.names("eq-a/train") == []


SCENES = [(video, number, 100 + step) for number, video in enumerate("abcd") for step in range(3)]


def test_more_and_fewer_are_the_same_dataset_as_from_the_start(
    greys: Any, tmp_path: Path, files_below: Any, no_cards: Any
) -> None:
    for count in (6, 12, 9):
        recipe = recipe_of({"eq-x": {**greys("eq-x", SCENES, 3), "count": count}})
        build_here(recipe, str(tmp_path / "grown"))
        build_here(recipe, str(tmp_path / f"fresh{count}"))
        assert files_below(tmp_path / "grown") == files_below(tmp_path / f"fresh{count}")


def test_a_subset_of_another_build_is_not_made_again_with_other_versions(
    greys: Any, tmp_path: Path, no_cards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... also where a stage of this recipe has its name."""
    out = str(tmp_path / "out")
    build_here(recipe_of({name: greys(name, [(name[-1], 1, 2)]) for name in ("eq-a", "eq-b")}), out)
    monkeypatch.setattr(Greys, "version", 2)
    (tmp_path / "words.json").write_text('["a word"]')
    words = {"source": {"kind": "test-words", "annotations": str(tmp_path / "words.json")}}
    # Without its twin in eq-a the sample of eq-b is no duplicate any more.
    with pytest.raises(BuildFailed, match=r"eq-b: this worker would make other bytes .*differs in generator"):
        build_here(recipe_of({"eq-a": greys("eq-a", [("a", 5, 6)])}, {"eq-b": words}), out)


def test_a_recipe_that_says_something_else_reaches_a_finished_card(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any
) -> None:
    out = tmp_path / "out"
    recipe, other = (recipe_of({name: greys(name, [("a", 1, 2)])}) for name in ("eq-x", "eq-y"))
    build_here(recipe, str(out))
    titled = recipe.model_copy(update={"title": "A title"})
    for _ in range(2):
        build_here(titled, str(out))
        assert no_cards == [["eq-x"] * 2] * 2 + [[]], "described again, once: a card, and the page"
    for build in (other, titled, other, titled):
        build_here(build, str(out))
    assert no_cards[2:] == [["eq-y", "eq-x and eq-y"], []], "two builds of one OUT leave each other's cards"


@pytest.mark.parametrize(("lost", "drawn"), [("README.md", []), ("eq-x/README.md", ["eq-x"])])
def test_a_card_that_is_lost_is_written_again(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any, lost: str, drawn: list[str]
) -> None:
    out, recipe = tmp_path / "out", recipe_of({"eq-x": greys("eq-x", [("a", 1, 2)])})
    build_here(recipe, str(out))
    whole = files_below(out)
    (out / lost).unlink()
    for _ in range(2):
        build_here(recipe, str(out))
        assert files_below(out) == whole and no_cards[1:] == [[*drawn, "eq-x"], []]
