"""A tiny model with random weights that is drawn with as Stable Diffusion is, and generators that use it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.generators.prompt_to_prompt.tiny_models import save_small
from twinset.generators.edited_pairs.source import StableDiffusion
from twinset.shards.contracts import Context

MakeGenerator = Callable[..., StableDiffusion]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small(tmp_path_factory.mktemp("tiny-diffusion"))


@pytest.fixture(scope="session")
def drawing_with(tiny_model: Path) -> MakeGenerator:
    """Settings -> a generator of pairs of 64 x 64 pixels, two steps each."""

    def generator(**settings: Any) -> StableDiffusion:
        given = {"model": str(tiny_model), "vocabulary": "small-world", "licence": "MIT", "steps": 2, **settings}
        return StableDiffusion(kind="stable-diffusion", **given).open(Context("eq-sd"))

    return generator
