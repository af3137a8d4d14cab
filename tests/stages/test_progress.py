"""What a build reports while it runs."""

from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1), "eq-y": greys("eq-y", [("e", 1, 2), ("f", 9, 9)], 1)})


class Told:
    """What a build reports."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int, int]] = []
        self.advanced: list[str] = []
        self.counted: list[tuple[str, int, int]] = []
        self.phases: dict[str, list[str]] = {}

    def begin(self, stage: str, total: int, done: int) -> None:
        self.begun.append((stage, total, done))

    def advance(self, stage: str) -> None:
        self.advanced.append(stage)

    def samples(self, stage: str, made: int, planned: int) -> None:
        self.counted.append((stage, made, planned))

    def phase(self, stage: str, doing: str) -> None:
        self.phases.setdefault(stage, []).append(doing)


def test_progress_counts_shards_and_names_phases(recipe: Any, tmp_path: Path) -> None:
    told = Told()
    build_here(recipe, str(tmp_path / "out"), progress=told)
    assert sorted(told.begun) == [("eq-x", 4, 0), ("eq-y", 2, 0)]
    assert sorted(told.advanced) == ["eq-x"] * 4 + ["eq-y"] * 2
    assert told.phases["eq-x"] == ["planning", "checking", "writing the index", ""]
    assert told.phases["dataset"][0] == "looking for duplicates" and told.phases["dataset"][-1] == ""
    (tmp_path / "out/eq-x/_meta/receipts/00002.json").unlink()
    again = Told()
    build_here(recipe, str(tmp_path / "out"), progress=again)
    assert again.begun == [("eq-x", 4, 3)] and again.advanced == ["eq-x"]


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_the_samples_of_a_shard_are_counted_while_it_is_made(
    greys: Any, tmp_path: Path, trouble: Any, monkeypatch: pytest.MonkeyPatch, runner: Any
) -> None:
    monkeypatch.setattr("twinset.stages.run_here.ROUND_SECONDS", 0.01)

    class Waited(Told):
        def samples(self, stage: str, made: int, planned: int) -> None:
            super().samples(stage, made, planned)
            if 0 < made < planned:
                trouble("b")  # it goes on

    told = Waited()
    trouble("b", "sleep")  # a child writes its count twice a second
    build_here(recipe_of({"eq-x": greys("eq-x", SCENES, 9)}), str(tmp_path / "out"), 1, runner, told)
    assert told.counted[0] == ("eq-x", 0, 4) and told.counted[-1] == ("eq-x", 4, 4)
    assert {made for _, made, _ in told.counted} & {1, 2, 3}, "within the only shard"
