"""Whole builds on this machine: the same bytes however they are run, resumed whatever happened; what they report."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import twinset
from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import MADE, Scene
from twinset.cli.main import main
from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe import Recipe
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here
from twinset.stages.dataset import drop_duplicates, missing_problem
from twinset.stages.finish import Silent
from twinset.stages.job import StageState, state_of

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1), "eq-y": greys("eq-y", [("e", 1, 2), ("f", 9, 9)], 1)})


@pytest.fixture
def second(greys: Any, tmp_path: Path) -> Recipe:
    """The second build of ``whole``, where it is built already, and ``out``, where it is not."""
    first = recipe_of({"eq-y": greys("eq-y", [("e", 1, 2), ("f", 9, 9)], 1)})
    recipe = recipe_of({"eq-x": greys("eq-x", SCENES, 1)})  # (1, 2) is in both: that of eq-y goes
    for one, out in ((first, "whole"), (first, "out"), (recipe, "whole")):
        build_here(one, str(tmp_path / out))
    return recipe


def test_another_subset_is_settled_after_a_kill_between_its_shards_and_its_index(
    second: Recipe, tmp_path: Path, files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*arguments: Any) -> None:
        drop_duplicates(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("twinset.stages.dataset.drop_duplicates", dies)
        build_here(second, str(tmp_path / "out"))
    build_here(second, str(tmp_path / "out"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


def test_a_damaged_index_of_the_same_size_hides_no_duplicate(second: Recipe, tmp_path: Path, files_below: Any) -> None:
    index = tmp_path / "out/eq-y/_meta/index.parquet"
    table, size = pq.read_table(index), index.stat().st_size
    swapped = table.set_column(table.schema.get_field_index("content"), "content", table["content"].take([1, 0]))
    pq.write_table(swapped, index, compression="zstd", store_schema=False, write_statistics=False)
    assert index.stat().st_size == size
    build_here(second, str(tmp_path / "out"))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "whole")


def test_a_missing_input_that_appears_is_built_by_the_same_process(
    greys: Any, media: Path, tmp_path: Path, files_below: Any
) -> None:
    recipe = recipe_of({"eq-x": greys("eq-x", [*SCENES, ("gone", 1, 9)], 1)})
    (media / "deep").mkdir()
    counts = build_here(recipe, str(tmp_path / "out"))["subsets"]["eq-x"]
    assert counts["planned"] == counts["kept"] + sum(counts["rejected"].values()) == 5
    (media / "deep/gone.mp4").write_bytes(b"here")
    MADE.clear()
    assert build_here(recipe, str(tmp_path / "out"))["subsets"]["eq-x"]["kept"] == 5 and MADE == ["gone"]
    build_here(recipe, str(tmp_path / "fresh"))
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
        build_here(recipe, str(tmp_path / "whole"), 1)
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
                build_here(recipe, str(out), 1)
        build_here(recipe, str(out), 1)
        assert files_below(out) == whole, f"after {last} files"


def test_a_build_without_enough_media_fails_and_lists_what_is_missing(
    greys: Any, tmp_path: Path, media: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scene, "media_names", property(lambda scene: (scene.video,)))
    scenes = [("x", 1, 9), ("y", 2, 8), ("y", 3, 8), ("z", 4, 8)]
    out, recipe = tmp_path / "out", recipe_of({"eq-x": greys("eq-x", scenes, 1)}, max_missing=0.01)
    twinset.plan(recipe, out)
    main(["status", str(out), "--missing", str(tmp_path / "list.tsv")])
    lines = (tmp_path / "list.tsv").read_text().splitlines()
    assert lines == ["stage\tmedia\tstate\turl", *(f"eq-x\t{video}\tabsent\t" for video in "xyz")]
    (media / "y.mp4").write_bytes(b"y")
    with pytest.raises(BuildFailed, match=rf"media of 2 of 4 .* out of reach of {media} \(2 missing-media\): 2 f"):
        build_here(recipe, str(out))
    (counts,) = twinset.status(out, tmp_path / "list.tsv")["subsets"].values()
    assert (counts["missing_media"], len(counts["problems"])) == (2, 1)
    assert [line.split("\t")[1] for line in (tmp_path / "list.tsv").read_text().splitlines()[1:]] == ["x", "z"]
    state = state_of(Store(str(out)), "eq-x")
    unsafe = replace(state, done=state.done.only([]))
    monkeypatch.setattr(StageState, "rejected", lambda state: {"unsafe-path": 1})  # of files that no list names
    assert "(1 unsafe-path); max_missing is 1.00%. Correct" in missing_problem(recipe, "eq-x", unsafe)


def test_shards_and_samples_are_counted_and_phases_named_while_it_runs(greys: Any, tmp_path: Path) -> None:
    counts: list[Any] = []
    phases: dict[str, list[str]] = {}

    class Told(Silent):
        def begin(self, stage: str, total: int, done: int) -> None:
            counts.append((stage, total, done))

        def samples(self, stage: str, made: int, planned: int) -> None:
            counts.append((made, planned))

        def phase(self, stage: str, doing: str) -> None:
            phases.setdefault(stage, []).append(doing)

    build_here(recipe_of({"eq-x": greys("eq-x", SCENES, 1)}), str(tmp_path / "out"), 1, "threads", Told())
    assert counts == [("eq-x", 4, 0), *((made, 4) for made in range(5))]
    assert phases["eq-x"] == ["planning", "checking", "writing the index", ""]
    assert phases["dataset"][0] == "looking for duplicates" and phases["dataset"][-1] == ""
