"""Directional similarity, with a tiny CLIP model of random weights."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

from generators.edited_pairs.scorer import Scorer
from generators.edited_pairs.scorer_files import scorer_digest, scorer_folder
from generators.prompt_to_prompt import model_files
from generators.prompt_to_prompt.model_files import ModelMissing
from manifests.errors import WrongUse
from shards.contracts import OutOfMemory
from tests.generators.prompt_to_prompt.tiny_models import TOKENS, text_config, tokenizer

NOISE = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)
CAPTIONS = ("A photo of a red circle.", "A photo of a blue circle.")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clip")
    words = tokenizer(folder / "words")
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision |= {"image_size": 32, "patch_size": 8}
    torch.manual_seed(0)
    config = CLIPConfig(text_config=text_config(words, 16).to_dict(), vision_config=vision, projection_dim=8)
    CLIPModel(config).save_pretrained(folder, safe_serialization=True)
    words.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def test_the_direction_is_one_of_change(clip: Path) -> None:
    scorer = Scorer(str(clip), "cpu")
    first, second = NOISE
    there = scorer.direction((first, second), CAPTIONS)
    assert -1 <= there <= 1 and there == scorer.direction((first, second), CAPTIONS)
    # Both turned round is the same change; one turned round is its opposite.
    assert scorer.direction((second, first), CAPTIONS[::-1]) == pytest.approx(there, abs=1e-5)
    assert scorer.direction((second, first), CAPTIONS) == pytest.approx(-there, abs=1e-5)
    assert scorer.direction((first, first), CAPTIONS) == 0


def test_a_scorer_scores_every_pair_and_rejects_none(clip: Path, drawing_with: Any) -> None:
    generator = drawing_with(scorer=str(clip))
    made = list(generator.make(list(islice(generator.plan(), 3))))
    assert all(-1 <= pair.scores["direction"] <= 1 for pair in made)
    assert generator.weights().keys() == {"model", "scorer"}
    plain = drawing_with()
    assert all("direction" not in pair.scores for pair in plain.make(list(islice(plain.plan(), 1))))


def test_a_caption_is_never_scored_by_its_beginning(clip: Path) -> None:
    longest = " ".join(["red"] * (TOKENS - 2))
    first, second = NOISE
    assert -1 <= Scorer(str(clip), "cpu").direction((first, second), (CAPTIONS[0], longest)) <= 1
    with pytest.raises(WrongUse, match=rf"red' has {TOKENS + 1} tokens, the scorer .* reads {TOKENS}; name another"):
        Scorer(str(clip), "cpu").direction((first, second), (CAPTIONS[0], f"{longest} red"))


def test_a_scorer_without_memory_is_told_from_other_trouble(clip: Path) -> None:
    scorer = Scorer(str(clip), "cpu")
    scorer._model.register_forward_pre_hook(lambda *_: torch.empty(1 << 50))
    with pytest.raises(OutOfMemory, match="can't allocate memory"):
        scorer.direction((NOISE[0], NOISE[1]), CAPTIONS)


def test_its_files_are_read_once(clip: Path, drawing_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = drawing_with(scorer=str(clip))
    digests = generator.weights()
    monkeypatch.setattr(model_files, "sha256_of_file", lambda path: pytest.fail(f"{path} is read again"))
    assert generator.weights() == digests
    (pair,) = generator.make(list(islice(generator.plan(), 1)))
    assert pair.provenance["weights"] == digests["model"]


def test_its_files_are_looked_for_and_digested(clip: Path, tmp_path: Path) -> None:
    assert scorer_folder(str(clip)) == clip and len(scorer_digest(str(clip))) == 32
    shutil.copytree(clip, tmp_path / "copy")
    assert scorer_digest(str(tmp_path / "copy")) == scorer_digest(str(clip))
    (tmp_path / "copy/added_tokens.json").write_text("{}")
    assert scorer_digest(str(tmp_path / "copy")) != scorer_digest(str(clip))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelMissing, match=r"lacks model\.safetensors, preprocessor_config\.json, vocab\.json, merges"):
        scorer_folder(str(tmp_path))
