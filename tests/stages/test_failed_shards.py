"""Shards that fail: what passes is tried again, the rest is named with its shard, and the other shards are made."""

import errno
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages.making import make
from twinset.stages.run_here import build_here
from twinset.stages.status import state_of

SCENES = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6), ("d", 7, 8)]
MISTAKE = r"LookupError: a mistake in a source \(.*drawn_sources\.py:\d+\)"
pytestmark = pytest.mark.usefixtures("no_cards")


@pytest.fixture
def recipe(greys: Any) -> Any:
    return recipe_of({"eq-x": greys("eq-x", SCENES, 1)})


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The next attempt comes at once; the seconds that it would have waited."""
    waited: list[float] = []
    monkeypatch.setattr(make.time, "sleep", waited.append)
    return waited


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_trouble_that_passes_is_tried_again(
    recipe: Any, tmp_path: Path, trouble: Any, waited: list[float], media: Path, runner: Any
) -> None:
    trouble("b", f"errno {errno.EIO} 1")
    assert build_here(recipe, str(tmp_path / "out"), 1, runner)["subsets"]["eq-x"]["kept"] == 4
    assert (media / "trouble/b.errno").read_text() == "xx"
    assert runner == "processes" or 1 in waited


@pytest.mark.parametrize(("number", "tries"), [(errno.EIO, 4), (errno.ENOSPC, 1), (errno.EROFS, 1), (errno.EACCES, 1)])
def test_trouble_that_stays_ends_the_build_with_the_shard(
    recipe: Any, tmp_path: Path, trouble: Any, waited: list[float], media: Path, number: int, tries: int
) -> None:
    trouble("b", f"errno {number} 99")
    with pytest.raises(BuildFailed, match=r"1 of 4 shards failed; run the same command again.*\neq-x shard 00001: "):
        build_here(recipe, str(tmp_path / "out"))
    assert (media / "trouble/b.errno").read_text() == "x" * tries
    trouble("b")
    assert build_here(recipe, str(tmp_path / "out"))["subsets"]["eq-x"]["kept"] == 4


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
