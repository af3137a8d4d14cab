"""Shards that fail: what passes is tried again, the rest is named with its shard, and the other shards are made."""

import errno
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages import make
from twinset.stages.build import build_here
from twinset.stages.job import state_of

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
MISTAKE = r"LookupError: a mistake in a source \(.*drawn_sources\.py:\d+\)"
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)})


@pytest.mark.parametrize(
    ("number", "times", "tries", "runner"),
    [
        (errno.EIO, 1, 2, "threads"),
        (errno.EIO, 1, 2, "processes"),
        (errno.EIO, 99, 4, "threads"),
        (errno.ENOSPC, 99, 1, "threads"),
    ],
)
def test_trouble_that_passes_is_tried_again_and_what_stays_ends_the_build_with_the_shard(
    recipe: Any, tmp_path: Path, trouble: Any, media: Path, monkeypatch: pytest.MonkeyPatch,
    number: int, times: int, tries: int, runner: Any,
) -> None:  # fmt: skip
    monkeypatch.setattr(make.time, "sleep", lambda seconds: None)
    trouble("b", f"errno {number} {times}")
    if times > tries:
        with pytest.raises(BuildFailed, match=r"1 of 4 shards failed; run the same.*\neq-x shard 00001: "):
            build_here(recipe, str(tmp_path / "out"), 1, runner)
        trouble("b")
    assert build_here(recipe, str(tmp_path / "out"), 1, runner)["subsets"]["eq-x"]["kept"] == 4
    assert (media / "trouble/b.errno").read_text() == "x" * tries


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runner", "what", "said"),
    [
        ("threads", "raise", MISTAKE),
        ("threads", "leave 0", "SystemExit: 0"),
        ("processes", "raise", MISTAKE),
        ("processes", "exit 0", r"its process died \(exit code 0\)"),
        ("processes", "kill", r"its process died \(signal 9\)"),
    ],
)
def test_a_source_that_fails_or_ends_its_process_fails_its_shard_alone(
    recipe: Any, tmp_path: Path, trouble: Any, files_below: Any, runner: Any, what: str, said: str
) -> None:
    out = tmp_path / "out"
    trouble("b", what)
    with pytest.raises(BuildFailed, match=rf"1 of 4 shards failed.*\neq-x shard 00001: {said}"):
        build_here(recipe, str(out), 1, runner)
    assert state_of(Store(str(out)), "eq-x").todo == [1]
    trouble("b")
    build_here(recipe, str(out))
    build_here(recipe, str(tmp_path / "whole"))
    assert files_below(out) == files_below(tmp_path / "whole")
