"""A shelf with three tiny assets."""

from pathlib import Path

import pytest

from tests.generators.kubric_scenes.tiny_assets import make_assets
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    return make_assets(tmp_path / "assets")


@pytest.fixture
def shelf(manifest: Path) -> AssetShelf:
    return AssetShelf(manifest)
