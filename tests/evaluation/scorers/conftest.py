"""Models of transformers, of a few thousand parameters, and the way to a server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.scorers.tiny_models import save_transformers
from twinset.evaluation.scorers.asking import ADDRESS, KEY, SETTINGS


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    kinds = {"clip": "clip", "siglip": "siglip", "siglip2": "siglip2", "blip-itm": "blip", "blip2-itm": "blip-2"}
    kinds |= {"vilt": "vilt", "flava": "flava"}
    return {kind: save_transformers(folder / kind, name) for kind, name in kinds.items()}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the variables that lead to a server."""

    def lead(url: str, **settings: Any) -> None:
        chosen = {"answers": str(tmp_path), "longest_wait": 0.01, "timeout": 300, **settings}
        monkeypatch.setenv(ADDRESS, url)
        monkeypatch.setenv(SETTINGS, json.dumps(chosen))
        monkeypatch.delenv(KEY, raising=False)

    return lead
