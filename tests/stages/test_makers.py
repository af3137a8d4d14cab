"""A worker that would make other bytes than planned says so and makes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from generators.kubric_scenes.captions.vocabulary import load_vocabulary
from generators.kubric_scenes.generator import KubricGenerator
from manifests.errors import BuildFailed
from manifests.recipe import load_recipe
from shards.storage import layout
from shards.storage.store import Store
from stages.makers import workshop_for
from stages.prepare import prepare

NAME = "eq-kubric-location"


@pytest.fixture
def planned(tmp_path: Path) -> Any:
    """A plan of scenes, as a worker finds it: recipe.json and stage.json."""
    entries = {use.id: {} for entry in load_vocabulary().objects.values() for use in entry.assets.procedural}
    (tmp_path / "assets.json").write_text(json.dumps({"assets": entries}))
    (tmp_path / "sky").mkdir()
    (tmp_path / "sky" / "noon.hdr").touch()
    source = {
        "kind": "kubric",
        "aspect": "location",
        "assets": "assets.json",
        "backgrounds": "sky",
        "licence": "CC0-1.0",
    }
    recipe = {"name": "scenes", "subsets": {NAME: {"source": source, "count": 3}}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    store = Store(str(tmp_path / "out"))
    stage = prepare(store, load_recipe(str(tmp_path / "recipe.yaml")), NAME)
    return store.read(layout.meta(NAME, "recipe.json")), NAME, stage.to_bytes()


@pytest.fixture(autouse=True)
def another_process() -> None:
    workshop_for.cache_clear()


def test_scenes_are_made_from_the_inputs_that_were_planned_with(planned: Any) -> None:
    assert workshop_for(*planned).generator.name == NAME  # type: ignore[attr-defined]


def test_other_assets(planned: Any, tmp_path: Path) -> None:
    content = json.loads((tmp_path / "assets.json").read_text())
    (tmp_path / "assets.json").write_text(json.dumps({**content, "version": "2"}))
    with pytest.raises(BuildFailed, match=r"differs in inputs; bring .*manifest of assets"):
        workshop_for(*planned)


def test_other_backgrounds(planned: Any, tmp_path: Path) -> None:
    (tmp_path / "sky" / "dusk.hdr").touch()
    with pytest.raises(BuildFailed, match="differs in inputs"):
        workshop_for(*planned)


def test_other_code(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KubricGenerator, "version", KubricGenerator.version + 1)
    with pytest.raises(BuildFailed, match="differs in generator"):
        workshop_for(*planned)


def test_other_libraries(planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manifests.stage._version", lambda name: "0" if name == "bpy" else _version(name))
    with pytest.raises(BuildFailed, match=r"differs in bpy \(\S+ in the plan, 0 here\)"):
        workshop_for(*planned)


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)
