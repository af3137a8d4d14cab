"""The model of two things begins as the small model, sees no caption that is held out, and can be made by several."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import CLIPTextModel, CLIPTokenizer

from studies.small_diffusion import train, train_relations
from studies.small_diffusion.autoencoder import new_autoencoder
from studies.small_diffusion.train_relations import (
    RelationTraining,
    arrangements,
    beginning,
    relation_examples,
    relation_tokenizer,
)
from tests.studies.small_diffusion.test_train import examples
from twinset_demo.models import SMALL
from twinset_demo.small_diffusion.layout import LENGTH
from twinset_demo.small_diffusion.relations import is_held_out, read_arrangement

SETTINGS = {"padding": "max_length", "max_length": LENGTH, "return_tensors": "pt"}


def test_words_are_tokens_and_known_ones_keep_what_they_mean(tmp_path: Path) -> None:
    tokenizer = relation_tokenizer(tmp_path)
    caption = "A purple house to the right of a black fish in the desert."
    words = caption.lower().rstrip(".").split()
    assert tokenizer.tokenize(caption) == [f"{word}</w>" for word in (*words, ".")]

    _, text = beginning(SMALL.folder, tokenizer)
    folder = SMALL.folder
    known = CLIPTextModel.from_pretrained(folder / "text_encoder", torch_dtype=torch.float32)
    its_tokenizer = CLIPTokenizer.from_pretrained(folder / "tokenizer")
    with torch.no_grad():
        for said in ("a red ball on the grass", ""):
            before = known(its_tokenizer([said], **SETTINGS).input_ids).last_hidden_state
            after = text(tokenizer([said], **SETTINGS).input_ids).last_hidden_state
            assert torch.equal(before, after), "the layers that are new have no effect yet"


def test_training_never_sees_what_is_held_out() -> None:
    captions, drawn = arrangements(np.random.default_rng(0), 300)
    assert not any(is_held_out(read_arrangement(caption)) for caption in captions)
    assert len(drawn) == 300


def test_examples_are_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_relations, "CHUNK", 4)
    training = RelationTraining(relation_tokenizer(tmp_path / "tokenizer"), 0, "cpu", tmp_path)
    vae = new_autoencoder()
    first = relation_examples(vae, training, 8)
    assert first.latents.shape == (8, 8, 16, 16) and first.tokens.shape == (8, LENGTH)
    assert not torch.equal(first.latents[:4], first.latents[4:])
    monkeypatch.setattr(train_relations, "arrangements", None)
    again = relation_examples(vae, training, 8)
    assert torch.equal(first.latents, again.latents) and torch.equal(first.tokens, again.tokens)


def test_noisy_timesteps_come_more_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_relations, "BATCH", 20_000)
    training = RelationTraining(relation_tokenizer(tmp_path / "tokenizer"), 0, "cpu", tmp_path)
    times = training.timesteps(torch.Generator().manual_seed(0))
    assert (int(times.min()), int(times.max())) == (0, 999) and times.dtype == torch.int64
    assert (times >= 600).float().mean().item() == pytest.approx(0.4 ** (2 / 3), abs=0.01)


def _gradients(training: train.Training, tokens: int) -> torch.Tensor:
    training.advance(examples(tokens), 0.0)
    return torch.cat([part.grad.flatten() for part in training.models.parameters() if part.grad is not None])


def _one_of_two(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    train.BATCH = 4
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    tokenizer = relation_tokenizer(folder / f"tokenizer{rank}")
    training = train.Training(tokenizer, 0, "cpu", folder)
    torch.save(_gradients(training, len(tokenizer)), folder / f"{rank}.pt")
    training.keep(new_autoencoder())
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_find_the_gradients_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH", 4)
    torch.multiprocessing.spawn(_one_of_two, (tmp_path,), nprocs=2)
    tokenizer = relation_tokenizer(tmp_path / "tokenizer")
    (tmp_path / "alone").mkdir()
    alone = _gradients(train.Training(tokenizer, 0, "cpu", tmp_path / "alone"), len(tokenizer))
    for rank in range(2):
        torch.testing.assert_close(torch.load(tmp_path / f"{rank}.pt"), alone, rtol=1e-3, atol=1e-5)
    assert (tmp_path / "training.pt").exists()
