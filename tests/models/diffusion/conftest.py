"""Random pipelines on disk, one of each class a session, and the engines that open them."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_args

import diffusers
import pytest

from tests.models.diffusion import tiny_pipelines
from twinset.models.diffusion.settings import DiffusersImages

Saved = Callable[[str], Path]
Opens = Callable[..., Any]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Class of a pipeline -> the folder of a model of it, written when it is first asked for."""
    return cache(lambda name: tiny_pipelines.save(tmp_path_factory.mktemp("pipeline"), name))


@pytest.fixture(scope="session")
def opens(saved: Saved) -> Opens:
    """Class of a pipeline, or a folder, and settings -> an engine for 64 x 64 pixels in two steps.

    by: class of its settings. fresh: whether its pipeline is loaded for this engine alone: a test may change it.
    """
    loaded: dict[str, Any] = {}

    def opened(model: str, by: type[Any] = DiffusersImages, fresh: bool = False, **settings: Any) -> Any:
        place = saved(model) if model in tiny_pipelines.ALL else model
        given = {"model": str(place), "licence": "MIT", "steps": 2, "resolution": 64, **settings}
        (kind,) = get_args(by.model_fields["kind"].annotation)
        engine = by(kind=kind, **given).open()
        if not fresh:
            key = engine.settings.model_dump_json(exclude={"micro_batch"})
            engine.pipeline = loaded[key] = loaded.get(key) or engine.pipeline
        return engine

    return opened


def published(folder: Path, name: str) -> Any:
    pipeline = getattr(diffusers, name).from_pretrained(folder)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def write_into(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **settings}))
