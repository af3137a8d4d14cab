"""A worker that would make other bytes than planned says so and makes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Dark, Greys
from twinset.contracts.errors import BuildFailed
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.job import Job
from twinset.stages.make import make_shard
from twinset.stages.plan import prepare

SCENES = [("a", 1, 2), ("b", 1, 3)]
Change = Callable[[pytest.MonkeyPatch, Path], Any]


def other_inputs(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Only what draws scenes reads its inputs again."""
    patch.setattr(Greys, "synthetic", True)
    (folder / "eq-x.json").write_text("[]")


CHANGES: dict[str, Change] = {
    "inputs": other_inputs,
    "generator": lambda patch, _: patch.setattr(Greys, "version", 2),
    "generator; bring": lambda patch, _: patch.setattr(Greys, "weights", lambda self: {"model": "1" * 64}),
    "filters": lambda patch, _: patch.setattr(Dark, "version", 2),
    r"numpy \(\S+ in the plan, 0 here\)": lambda patch, _: patch.setattr(
        "twinset.contracts.stage.version", lambda name: "0"
    ),
}


@pytest.fixture(autouse=True)
def another_process() -> None:
    job._worker_of.cache_clear()


@pytest.mark.parametrize("differs", CHANGES)
def test_what_would_change_the_bytes_is_named(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch, differs: str
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 1, ["test-dark"])
    assert build.stage.facts["generator"]["distribution"] == "twinset-tests 1.0"
    CHANGES[differs](monkeypatch, tmp_path)
    with pytest.raises(BuildFailed, match=f"differs in {differs}"):
        make_shard(build.store.root, "eq-x", 0)
    assert build.state().todo == [0, 1]


def test_shards_of_two_kinds_of_machine_do_not_mix(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", SCENES, 1, micro_batch=4)
    make_shard(build.store.root, "eq-x", 0)
    monkeypatch.setattr(Greys, "runs_on", lambda self: "NVIDIA H100")
    job._worker_of.cache_clear()
    with pytest.raises(BuildFailed, match=r"out/eq-x: made on different types of machine"):
        make_shard(build.store.root, "eq-x", 1)
    allowed = recipe_of({"eq-x": build.job.recipe["eq-x"].model_dump(mode="json")}, allow_mixed_runtimes=True)
    prepare(Job(allowed, build.store), "eq-x")
    assert make_shard(build.store.root, "eq-x", 1).kept == 1
