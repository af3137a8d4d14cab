"""Random models on disk, one of each kind a session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.generators.prompt_to_prompt.conftest import saved as saved
from twinset.models.diffusion.model import Model
from twinset.models.diffusion.painter import DiffusionPainter
from twinset.models.diffusion.settings import DiffusionImages
from twinset.models.image_engine import Request

Painter = Callable[..., DiffusionPainter]


@pytest.fixture(scope="session")
def painter(saved: Callable[[str], Path]) -> Painter:
    """Kind of a model and settings -> an engine that draws 64 x 64 pixels in two steps.

    fresh: whether its model is loaded for this engine alone, so that a test may change it.
    """
    loaded: dict[str, list[Model]] = {}

    def opened(kind: str = "small", fresh: bool = False, **settings: Any) -> DiffusionPainter:
        given = {"model": str(saved(kind)), "licence": "MIT", "steps": 2, "resolution": 64, "micro_batch": 2}
        engine = DiffusionImages(kind="diffusion", **{**given, **settings}).open()
        if not fresh:
            engine._loaded = loaded.setdefault(engine.settings.model_dump_json(exclude={"micro_batch"}), [])
        return engine

    return opened


@contextmanager
def watched(*modules: Any) -> Iterator[list[int]]:
    """How many rows each call of these modules has, while the context lasts."""
    rows: list[int] = []
    hooks = [one.register_forward_pre_hook(lambda _, given: rows.append(len(given[0]))) for one in modules]
    yield rows
    for hook in hooks:
        hook.remove()


def requests(*prompts: str) -> list[Request]:
    return [Request(f"key-{number}", prompt, prompt, 100 + number) for number, prompt in enumerate(prompts)]
