"""A shelf with three tiny assets."""

import json
from pathlib import Path

import pytest

from tests.generators.kubric_scenes.tiny_assets import SHAPES, entry, files, pack
from twinset.generators.kubric_scenes.assets import AssetShelf


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    folder = tmp_path / "assets"
    folder.mkdir()
    for name in SHAPES:
        pack(folder / f"{name}.tar.gz", files(name))
    (folder / "manifest.json").write_text(json.dumps({"assets": {name: entry(name) for name in SHAPES}}))
    return folder / "manifest.json"


@pytest.fixture
def shelf(manifest: Path) -> AssetShelf:
    return AssetShelf(manifest)
