"""A recipe of two subsets."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe

RECIPE: dict[str, Any] = {
    "name": "small",
    "subsets": {
        "eq-ag": {"source": {"kind": "action-genome", "annotations": "ann.pkl", "media": "../videos"}},
        "eq-youcook2": {
            "source": {"kind": "youcook2", "annotations": "/data/ann.json", "media": "~/videos"},
            "filters": [{"kind": "faces"}, {"kind": "blank", "contrast": 5}],
            "shard_size": 16,
        },
    },
}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipes" / "small.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(RECIPE))
    return path


def refused(recipe: Path, *settings: str) -> str:
    with pytest.raises(WrongUse) as caught:
        load_recipe(str(recipe), settings)
    return str(caught.value)
