"""When cards are written again: other shards, or other words."""

from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Greys
from twinset.stages.run_here import build_here

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 7, 8)]


def test_corrected_words_of_a_source_reach_a_finished_card(
    tmp_path: Path, greys: Any, no_cards: list[list[str]], files_below: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    recipe, other = (
        recipe_of({"eq-x": greys("eq-x", SCENES, 1)}),
        recipe_of({"eq-y": greys("eq-y", [("d", 50, 60)], 1)}),
    )
    build_here(recipe, str(out))
    whole = files_below(out)
    monkeypatch.setattr(Greys, "notes", lambda self: "* Corrected.\n")
    for _ in range(2):
        build_here(recipe, str(out))
        assert no_cards == [["eq-x"], ["eq-x"]], "described again, once"
    assert files_below(out) == whole
    for one in (other, recipe, other, recipe):
        build_here(one, str(out))
    assert no_cards[2:] == [["eq-x", "eq-y"]], "two builds of one OUT leave each other's words"
