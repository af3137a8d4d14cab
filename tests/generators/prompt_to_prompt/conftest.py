"""Random models on disk, one of each kind a session, prompt-to-prompt with them, and sources that draw so."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers import CLIPTokenizer

from tests.models.diffusion import tiny_models
from twinset.generators.prompt_to_prompt.pipeline import PromptToPrompt
from twinset.generators.prompt_to_prompt.source import StableDiffusion
from twinset.models.diffusion.pipeline import OpenPipeline
from twinset.shards.contracts import Context

Load = Callable[..., PromptToPrompt]
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
    """Kind and settings -> its pipeline, loaded from disk once: four steps, on the CPU."""

    @cache
    def opened(kind: str, **settings: Any) -> PromptToPrompt:
        given = {"model": str(saved(kind)), "licence": "MIT", "steps": 4, "guidance": 5.0, **settings}
        return PromptToPrompt(OpenPipeline(StableDiffusion.model_validate({"kind": "stable-diffusion", **given})))

    return opened


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
