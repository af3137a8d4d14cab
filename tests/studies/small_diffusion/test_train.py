"""Training goes on where it stopped, and what it saves is a model of diffusers' own layout."""

from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionPipeline

from studies.small_diffusion import train
from studies.small_diffusion.autoencoder import new_autoencoder, pictures
from twinset_demo.small_diffusion.layout import LENGTH, new_tokenizer
from twinset_demo.small_diffusion.scenes import is_held_out


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH", 2)


def examples(tokens: int) -> train.Examples:
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(8, 8, 16, 16, generator=generator)
    return train.Examples(latents, torch.randint(tokens, (8, LENGTH), generator=generator), torch.zeros(LENGTH).long())


def weights(training: train.Training) -> torch.Tensor:
    return torch.cat([parameter.flatten() for parameter in training.average.parameters()])


def test_training_that_was_stopped_ends_like_one_that_was_not(tmp_path: Path) -> None:
    tokenizer = new_tokenizer(tmp_path / "tokenizer")
    whole, first = (train.Training(tokenizer, 0, "cpu", tmp_path / name) for name in ("whole", "parts"))
    shown = examples(len(tokenizer))
    for _ in range(4):
        whole.advance(shown, 1e-3)
    for _ in range(2):
        first.advance(shown, 1e-3)
    first.keep(new_autoencoder())
    second = train.Training(tokenizer, 0, "cpu", tmp_path / "parts")
    assert second.step == 2
    for _ in range(2):
        second.advance(shown, 1e-3)
    assert torch.equal(weights(whole), weights(second))

    saved = tmp_path / "parts" / "model"
    pipeline = StableDiffusionPipeline.from_pretrained(saved, use_safetensors=True, torch_dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    drawn = pipeline("a photo of a red ball", num_inference_steps=2, output_type="np").images
    assert drawn.shape == (1, 64, 64, 3)


def test_the_rate_rises_holds_and_falls() -> None:
    rates = [train.rate_at(step, 1000, 400) for step in range(1000)]
    assert rates[0] < rates[100] < rates[300] == train.RATE == rates[600]
    assert 0 < rates[999] < rates[800] < train.RATE


def test_words_of_the_world_are_tokens_and_others_fall_into_letters(tmp_path: Path) -> None:
    tokenizer = new_tokenizer(tmp_path)
    caption = "A painting of a small purple house on the left in the desert at night."
    words = caption.lower().rstrip(".").split()
    assert tokenizer.tokenize(caption) == [f"{word}</w>" for word in (*words, ".")]
    assert tokenizer.tokenize("dog") == ["d", "o", "g</w>"]


def test_training_never_sees_a_caption_that_is_held_out() -> None:
    captions, drawn = pictures(np.random.default_rng(0), 300)
    assert not any(map(is_held_out, captions))
    assert drawn.shape == (300, 64, 64, 3)
