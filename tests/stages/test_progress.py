"""What a build reports while it runs."""

from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]


@pytest.mark.usefixtures("no_cards")
@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_shards_and_samples_are_counted_and_phases_named_while_it_runs(
    greys: Any, tmp_path: Path, trouble: Any, monkeypatch: pytest.MonkeyPatch, runner: Any
) -> None:
    monkeypatch.setattr("twinset.stages.run_here.ROUND_SECONDS", 0.01)
    shards: list[Any] = []
    counted: list[tuple[int, int]] = []
    phases: dict[str, list[str]] = {}

    class Told:
        def begin(self, stage: str, total: int, done: int) -> None:
            shards.append((stage, total, done))

        def advance(self, stage: str) -> None:
            shards.append(stage)

        def samples(self, stage: str, made: int, planned: int) -> None:
            counted.append((made, planned))
            if 0 < made < planned:
                trouble("b")  # it goes on

        def phase(self, stage: str, doing: str) -> None:
            phases.setdefault(stage, []).append(doing)

    trouble("b", "sleep")  # a child writes its count twice a second
    build_here(recipe_of({"eq-x": greys("eq-x", SCENES, 9)}), str(tmp_path / "out"), 1, runner, Told())
    assert shards == [("eq-x", 1, 0), "eq-x"]
    assert counted[0] == (0, 4) and counted[-1] == (4, 4)
    assert {made for made, _ in counted} & {1, 2, 3}, "within the only shard"
    assert phases["eq-x"] == ["planning", "checking", "writing the index", ""]
    assert phases["dataset"][0] == "looking for duplicates" and phases["dataset"][-1] == ""
