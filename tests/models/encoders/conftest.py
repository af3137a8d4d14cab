"""Models of transformers, of a few thousand parameters."""

from pathlib import Path

import pytest

from tests.evaluation.scorers.tiny_models import save_transformers


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    kinds = {"clip": "clip", "siglip": "siglip", "siglip2": "siglip2", "blip-itm": "blip", "blip2-itm": "blip-2"}
    kinds |= {"vilt": "vilt", "flava": "flava"}
    return {kind: save_transformers(folder / kind, name) for kind, name in kinds.items()}
