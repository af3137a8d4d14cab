"""A worker that would make other bytes than planned says so and makes nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stages.conftest import recipe_of
from tests.stages.drawn_sources import Dark, Greys
from twinset.contracts.errors import BuildFailed
from twinset.generators.kubric_scenes.captions import load_vocabulary
from twinset.shards.storage.store import Store
from twinset.stages import job
from twinset.stages.job import Job, StageWorker, worker_of
from twinset.stages.making.make import make_shard
from twinset.stages.plan import prepare

NAME = "eq-kubric-location"
VERSION = "twinset.contracts.stage._version"


@pytest.fixture(autouse=True)
def another_process() -> None:
    job._worker_of.cache_clear()


@pytest.fixture
def planned(tmp_path: Path) -> Any:
    """Gives the worker of a plan of scenes as a worker opens it."""
    entries = {asset: {} for entry in load_vocabulary().objects.values() for asset in entry.assets.procedural}
    (tmp_path / "assets.json").write_text(json.dumps({"assets": entries}))
    source = {
        "kind": "kubric",
        "aspect": "location",
        "assets": str(tmp_path / "assets.json"),
        "licence": "CC0-1.0",
    }
    store = Store(str(tmp_path / "out"))
    stage = prepare(Job(recipe_of({NAME: {"source": source, "count": 3}}), store), NAME)

    def opened() -> StageWorker:
        return worker_of(store, NAME, stage)

    return opened


def test_other_assets(planned: Any, tmp_path: Path) -> None:
    content = json.loads((tmp_path / "assets.json").read_text())
    (tmp_path / "assets.json").write_text(json.dumps({**content, "version": "2"}))
    with pytest.raises(BuildFailed, match=r"differs in inputs; bring .*manifest of assets"):
        planned()


def test_other_libraries(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VERSION, lambda name: "0" if name == "bpy" else _version(name))
    with pytest.raises(BuildFailed, match=r"differs in bpy \(\S+ in the plan, 0 here\)"):
        planned()


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


@pytest.mark.parametrize("changed", [Greys, Dark])
def test_another_version_of_a_foreign_source_or_filter(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch, changed: Any
) -> None:
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", [("a", 1, 2)], 1, ["test-dark"])
    assert build.stage.facts["generator"]["distribution"] == "twinset-tests 1.0"
    assert build.stage.facts["filters"][0]["distribution"] == "twinset-tests 1.0"
    monkeypatch.setattr(changed, "version", 2)
    with pytest.raises(BuildFailed, match=f"differs in {'generator' if changed is Greys else 'filters'}"):
        make_shard(build.store.root, "eq-x", 0)
    assert build.state().todo == [0]


def test_shards_of_two_kinds_of_machine_do_not_mix(
    tmp_path: Path, planned_build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes = [("a", 1, 2), ("b", 1, 3)]
    build = planned_build(Store(str(tmp_path / "out")), "eq-x", scenes, 1, micro_batch=4)
    make_shard(build.store.root, "eq-x", 0)
    monkeypatch.setattr(Greys, "runs_on", lambda self: "NVIDIA H100")
    job._worker_of.cache_clear()
    with pytest.raises(BuildFailed, match=r"out/eq-x: made on different types of machine"):
        make_shard(build.store.root, "eq-x", 1)
    allowed = recipe_of({"eq-x": build.job.recipe["eq-x"].model_dump(mode="json")}, allow_mixed_runtimes=True)
    prepare(Job(allowed, build.store), "eq-x")
    assert make_shard(build.store.root, "eq-x", 1).kept == 1
