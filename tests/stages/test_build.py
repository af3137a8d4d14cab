"""Whole builds on this machine: the same bytes however they are run, resumed whatever happened."""

import itertools
import time
from collections.abc import Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE, Greys, Scene
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed
from twinset.shards.read import read_samples
from twinset.shards.rows import DUPLICATE
from twinset.shards.storage.store import Store
from twinset.stages.dataset import drop_duplicates
from twinset.stages.finish import Silent, disagreeing, forget, remove_leftovers
from twinset.stages.overview import verify_stage

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1), "eq-y": greys("eq-y", [("e", 1, 2), ("f", 9, 9)], 1)})


def test_another_subset_is_settled_after_a_kill(
    greys: Any, tmp_path: Path, files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its shards and its index."""
    first = recipe_of({"eq-y": greys("eq-y", [("e", 1, 2), ("f", 9, 9)], 1)})
    second = recipe_of({"eq-x": greys("eq-x", SCENES, 1)})  # (1, 2) is in both: that of eq-y goes
    for recipe, out in ((first, "whole"), (first, "out"), (second, "whole")):
        twinset.build(recipe, tmp_path / out)

    def dies(*arguments: Any) -> None:
        drop_duplicates(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("twinset.stages.dataset.drop_duplicates", dies)
        twinset.build(second, tmp_path / "out")
    twinset.build(second, tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


def test_an_interrupt_claims_until_stages_end(greys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []

    def interrupted(*given: Any, **named: Any) -> Any:
        if named:  # in the main thread, where it waits for a stage
            raise KeyboardInterrupt
        return wait(*given)

    def planned(*_: Any) -> None:
        time.sleep(0.5)  # meanwhile the build is interrupted
        held.append((tmp_path / "out/_building").exists())

    monkeypatch.setattr("twinset.stages.build.wait", interrupted)
    monkeypatch.setattr("twinset.stages.build.prepare", planned)
    with pytest.raises(KeyboardInterrupt):
        twinset.build(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "out")
    assert held == [True]


def test_a_missing_input_that_appears_is_built(greys: Any, media: Path, tmp_path: Path, files_below: Any) -> None:
    recipe = recipe_of({"eq-x": greys("eq-x", [*SCENES, ("gone", 1, 9)], 1)})
    (media / "deep").mkdir()
    counts = twinset.build(recipe, tmp_path / "out")["subsets"]["eq-x"]
    assert counts["planned"] == counts["kept"] + sum(counts["rejected"].values()) == 5
    (media / "deep/gone.mp4").write_bytes(b"here")
    MADE.clear()
    assert twinset.build(recipe, tmp_path / "out")["subsets"]["eq-x"]["kept"] == 5 and MADE == ["gone"]
    twinset.build(recipe, tmp_path / "fresh")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh")


@pytest.mark.slow
def test_interrupted_anywhere_it_ends_in_the_same_bytes(
    recipe: Any, tmp_path: Path, files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every move into place of a whole build is a place to die."""
    move_in: Callable[[Store, Path, str], None] = Store.move_in
    moved: list[str] = []

    def counted(self: Store, spooled: Path, path: str) -> None:
        move_in(self, spooled, path)
        moved.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "move_in", counted)
        twinset.build(recipe, tmp_path / "whole", workers=1)
    whole = files_below(tmp_path / "whole")
    for last in range(0, len(moved), 3):
        moved.clear()

        def dies(self: Store, spooled: Path, path: str, last: int = last) -> None:
            if len(moved) >= last:
                raise KeyboardInterrupt
            counted(self, spooled, path)

        out = tmp_path / f"{last}"
        with monkeypatch.context() as patch:
            patch.setattr(Store, "move_in", dies)
            with pytest.raises((KeyboardInterrupt, BuildFailed)):
                twinset.build(recipe, str(out), workers=1)
        twinset.build(recipe, str(out), workers=1)
        assert files_below(out) == whole, f"after {last} files"


def test_a_build_lists_missing_media(greys: Any, tmp_path: Path, media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scene, "media_names", property(lambda scene: (scene.video,)))
    scenes = [("x", 1, 9), ("y", 2, 8), ("y", 3, 8), ("z", 4, 8)]
    out, recipe = tmp_path / "out", recipe_of({"eq-x": greys("eq-x", scenes, 1)}, max_missing=0.01)
    twinset.plan(recipe, out)
    main(["status", str(out), "--missing", str(tmp_path / "list.tsv")])
    lines = (tmp_path / "list.tsv").read_text().splitlines()
    assert lines == ["stage\tmedia\tstate\turl", *(f"eq-x\t{video}\tabsent\t" for video in "xyz")]
    (media / "y.mp4").write_bytes(b"y")
    with pytest.raises(BuildFailed, match=rf"media of 2 of 4 .* out of reach of {media} \(2 missing-media\): 2 f"):
        twinset.build(recipe, str(out))
    (counts,) = twinset.status(out, tmp_path / "list.tsv")["subsets"].values()
    assert (counts["missing_media"], len(counts["problems"])) == (2, 1)
    assert [line.split("\t")[1] for line in (tmp_path / "list.tsv").read_text().splitlines()[1:]] == ["x", "z"]


def test_shards_and_samples_are_counted_and_phases_named_while_it_runs(greys: Any, tmp_path: Path) -> None:
    counts: list[Any] = []
    phases: dict[str, list[str]] = {}

    class Counted(Silent):
        def begin(self, stage: str, total: int, done: int) -> None:
            counts.append((stage, total, done))

        def samples(self, stage: str, made: int, planned: int) -> None:
            counts.append((made, planned))

        def phase(self, stage: str, doing: str) -> None:
            phases.setdefault(stage, []).append(doing)

    twinset.build(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), tmp_path / "out", workers=1, progress=Counted())
    assert counts == [("eq-x", 4, 0), *((made, 4) for made in range(5))]
    assert phases["eq-x"] == ["planning", "checking", "writing the index", ""]
    assert phases["dataset"][0] == "looking for duplicates" and phases["dataset"][-1] == ""


# (1, 2) is in every subset and twice in eq-a; (4, 3) mirrors (3, 4), which asks the same question.
SUBSETS = {
    "eq-a": [("a", 1, 2), ("a", 5, 6), ("b", 3, 4), ("c", 1, 2)],
    "eq-b": [("a", 1, 2), ("b", 4, 3), ("c", 7, 8)],
    "eq-c": [("d", 1, 2), ("e", 9, 10)],
}


def finish(builds: dict[str, Any]) -> None:
    """What a build does once all shards are made: drop duplicates, make again what must be, until nothing changes."""
    for _ in range(3):
        states = {name: build.indexed() for name, build in builds.items()}
        _, again = drop_duplicates(next(iter(builds.values())).store, states)
        for name, numbers in again.items():
            forget(builds[name].store, name, numbers)
            builds[name].make_all()
        if not again:
            for build in builds.values():
                build.indexed()
            return
    raise AssertionError("duplicates do not settle")


def questions(build: Any) -> list[tuple[str, str]]:
    return [(pair.texts["caption0"], pair.texts["caption1"]) for pair in read_samples(build.store, build.name)]


def test_one_of_each_question_stays_whatever_is_built_first(
    tmp_path: Path, planned_build: Any, files_below: Any
) -> None:
    expected: dict[str, bytes] = {}
    for number, order in enumerate([*itertools.permutations(SUBSETS)][::2]):
        out = tmp_path / f"out{number}"
        builds: dict[str, Any] = {}
        for name in order:
            builds[name] = planned_build(SUBSETS[name], 1, out=out.name, name=name)
            for shard in builds[name].state().todo[:: (1, -1)[number % 2]]:
                builds[name].make(shard)
            finish(builds)
        expected = expected or files_below(out)
        assert files_below(out) == expected, order
    asked = [frozenset(question) for build in builds.values() for question in questions(build)]
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


def test_what_an_older_plan_left_is_removed_alone(tmp_path: Path, planned_build: Any, files_below: Any) -> None:
    older = planned_build([*SUBSETS["eq-a"], ("d", 30, 31)], 1, name="eq-a", splits={"d": "train"})
    older.make_all()
    (tmp_path / "out/eq-a/_meta/plan/00001.parquet").write_bytes(b"of shards 1000 to 1999")
    mine = [tmp_path / "out/eq-a" / name for name in ("test/00003.idx", "backup/00000.tar")]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("somebody's")
    for out in ("out", "fresh"):
        newer = planned_build(SUBSETS["eq-a"][:2], 2, out=out, name="eq-a", splits={"a": "val"})
        newer.make_all()
        remove_leftovers(newer.store, newer.state())
    for path in mine:
        path.unlink()
    assert files_below(tmp_path / "out") == files_below(tmp_path / "fresh") and older.store.names("eq-a/train") == []


def test_a_subset_of_another_build_keeps_its_versions(
    greys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... also where a stage of this recipe has its name."""
    out = str(tmp_path / "out")
    twinset.build(recipe_of({name: greys(name, [(name[-1], 1, 2)]) for name in ("eq-a", "eq-b")}), out)
    monkeypatch.setattr(Greys, "version", 2)
    (tmp_path / "words.json").write_text('["a word"]')
    words = {"source": {"kind": "test-words", "annotations": str(tmp_path / "words.json")}}
    # Without its twin in eq-a the sample of eq-b is no duplicate any more.
    with pytest.raises(BuildFailed, match=r"eq-b: this worker would make other bytes .*differs in generator"):
        twinset.build(recipe_of({"eq-a": greys("eq-a", [("a", 5, 6)])}, {"eq-b": words}), out)


def test_a_changed_title_reaches_a_finished_card(tmp_path: Path, greys: Any, no_cards: list[list[str]]) -> None:
    out = tmp_path / "out"
    recipe, second = (recipe_of({name: greys(name, [("a", 1, 2)])}) for name in ("eq-x", "eq-y"))
    twinset.build(recipe, str(out))
    titled = recipe.model_copy(update={"title": "A title"})
    for _ in range(2):
        twinset.build(titled, str(out))
        assert no_cards == [["eq-x"] * 2] * 2 + [[]], "described again, once: a card, and the page"
    for build in (second, titled, second, titled):
        twinset.build(build, str(out))
    assert no_cards[2:] == [["eq-y", "eq-x and eq-y"], []], "two builds of one OUT leave each other's cards"


@pytest.mark.parametrize(("lost", "drawn"), [("README.md", []), ("eq-x/README.md", ["eq-x"])])
def test_a_card_that_is_lost_is_written_again(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any, lost: str, drawn: list[str]
) -> None:
    out, recipe = tmp_path / "out", recipe_of({"eq-x": greys("eq-x", [("a", 1, 2)])})
    twinset.build(recipe, str(out))
    whole = files_below(out)
    (out / lost).unlink()
    for _ in range(2):
        twinset.build(recipe, str(out))
        assert files_below(out) == whole and no_cards[1:] == [[*drawn, "eq-x"], []]
