"""Random models on disk, one of each kind a session, prompt-to-prompt with them, and sources that draw so."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CLIPTokenizer

from tests.models.diffusion import tiny_models
from twinset.generators.prompt_to_prompt.pipeline import PromptToPrompt, load_model
from twinset.generators.prompt_to_prompt.source import StableDiffusion
from twinset.shards.contracts import Context

Load = Callable[[str], PromptToPrompt]
SAVED = {
    "stable-diffusion-1.4": tiny_models.save_stable_diffusion,
    "sdxl": tiny_models.save_sdxl,
    "small": tiny_models.save_small,
}


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """kind -> the folder of a model of this kind, written when it is first asked for."""
    return cache(lambda kind: SAVED[kind](tmp_path_factory.mktemp(kind)))


@pytest.fixture(scope="session")
def load(saved: Callable[[str], Path]) -> Load:
    """kind -> its pipeline, loaded from disk on the CPU, once."""
    return cache(lambda kind: load_model(str(saved(kind)), "cpu", torch.float32))


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> CLIPTokenizer:
    return tiny_models.tokenizer(tmp_path_factory.mktemp("words"))


@pytest.fixture
def drawing_with(saved: Callable[[str], Path]) -> Callable[..., StableDiffusion]:
    """Settings -> a source of pairs of 64 x 64 pixels, two steps each."""

    def source(**settings: Any) -> StableDiffusion:
        given = {"model": str(saved("small")), "vocabulary": "small-world", "licence": "MIT", "steps": 2, **settings}
        return StableDiffusion(kind="stable-diffusion", **given).open(Context("eq-sd"))

    return source
