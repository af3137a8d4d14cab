"""SDXL fills captions up with "!" for its second text encoder, and with the mark of the end for the first."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.models.pipelines.conftest import Saved
from tests.models.pipelines.test_refused_folders import says
from twinset.models.diffusion.models import load_parts
from twinset.models.diffusion.text import encode
from twinset.models.pipelines.opening import OpenPipeline
from twinset.models.pipelines.settings import DiffusersImages

CAPTION = "a photo of a cat"


@pytest.fixture
def folder(saved: Saved, tmp_path: Path) -> Path:
    """SDXL, with its second tokenizer as published: its settings name the sign that captions are filled up with."""
    at = Path(shutil.copytree(saved("StableDiffusionXLPipeline"), tmp_path / "model"))
    says(at / "tokenizer_2/tokenizer_config.json", pad_token="!")
    words = json.loads((at / "tokenizer_2/tokenizer.json").read_bytes())
    vocabulary, merges = words["model"]["vocab"], {part for merge in words["model"]["merges"] for part in merge}
    vocabulary["!"] = vocabulary.pop(next(one for one in vocabulary if one not in merges and one not in CAPTION))
    (at / "tokenizer_2/tokenizer.json").write_text(json.dumps(words))
    return at


def read(folder: Path, engine: str) -> list[tuple[Any, Any]]:
    """Tokenizer and what the text encoder reads of a caption, of both."""
    met: list[Any] = []

    def remember(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        met.append(named["input_ids"] if "input_ids" in named else given[0])

    if engine == "diffusion":
        encoders = load_parts(str(folder), "cpu").encoders
    else:
        given = {"kind": "diffusers", "model": str(folder), "licence": "MIT", "steps": 1, "resolution": 64}
        pipeline = OpenPipeline(DiffusersImages.model_validate(given))
        parts = pipeline._pipeline
        encoders = [(parts.tokenizer, parts.text_encoder), (parts.tokenizer_2, parts.text_encoder_2)]
    for _, encoder in encoders:
        encoder.register_forward_pre_hook(remember, with_kwargs=True)
    if engine == "diffusion":
        encode(encoders, CAPTION)
    else:
        pipeline([CAPTION], [1], height=64, width=64)
    return [(words, ids[0].tolist()) for (words, _), ids in zip(encoders, met, strict=False)]


@pytest.mark.parametrize("engine", ["diffusion", "diffusers"])
def test_each_caption_is_filled_up_by_its_own_sign(folder: Path, engine: str) -> None:
    with torch.inference_mode():
        first, second = read(folder, engine)
    for (words, ids), sign in ((first, first[0].eos_token_id), (second, second[0].convert_tokens_to_ids("!"))):
        written = words(CAPTION).input_ids
        assert ids == [*written, *[sign] * (words.model_max_length - len(written))] and len(written) < len(ids)
    assert second[1][-1] != second[0].eos_token_id
