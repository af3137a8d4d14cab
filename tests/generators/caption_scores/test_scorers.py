"""Each scorer on its published layout, against a transcription that reads one text at a time without padding."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import open_clip  # type: ignore[import-untyped]
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BloomConfig,
    BloomForCausalLM,
    CLIPModel,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaForSequenceClassification,
    T5EncoderModel,
)

from tests.generators.caption_scores.tiny_scorers import (
    BIAS,
    READS,
    TEMPERATURE,
    TEXTS,
    save_language_model,
    save_open_clip,
    scored,
    settings,
)
from twinset.contracts.errors import WrongUse


@torch.inference_mode()
def mean_chances(folder: Path, texts: tuple[str, ...] = TEXTS) -> list[float]:
    """Mean log-probability of each text's tokens, one text at a time."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    means = []
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        chances = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(dim=1)
        means.append(float(np.mean([float(chances[n, token]) for n, token in enumerate(ids[1:])])))
    return means


def test_vera_is_its_head_on_the_end_of_the_text(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["vera"]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), T5EncoderModel.from_pretrained(folder).eval()
    expected = []
    with torch.inference_mode():
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt").input_ids
            assert ids[0, -1] == tokenizer.eos_token_id
            end = model(input_ids=ids).last_hidden_state[0, -1]
            logit = float(end @ model.shared.weight[32099]) + BIAS
            expected.append(1 / (1 + np.exp(-logit / TEMPERATURE)))
    found = scored("vera", folder).values
    assert np.allclose(found, expected, atol=1e-5) and np.ptp(found) > 0.01


def test_cola_is_the_second_class_and_loads_from_a_pickle_without_code(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["cola"]
    assert (folder / "pytorch_model.bin").is_file() and not (folder / "model.safetensors").exists()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = RobertaForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = [float(model(**tokenizer(text, return_tensors="pt")).logits.softmax(dim=1)[0, 1]) for text in TEXTS]
    assert np.allclose(scored("cola", folder).values, expected, atol=1e-5) and np.ptp(expected) > 0.01


def test_clip_gives_unit_embeddings_of_transformers(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["clip"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = CLIPModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        full = tokenizer(list(TEXTS), padding="max_length", max_length=77, return_tensors="pt")
        embeds = model(**full, pixel_values=torch.zeros(1, 3, *[model.config.vision_config.image_size] * 2)).text_embeds
    expected = (embeds / embeds.norm(dim=1, keepdim=True)).numpy()
    assert np.allclose(scored("clip", folder).values, expected, atol=1e-5)


def test_clip_gives_unit_embeddings_of_open_clip_with_its_activation(tmp_path: Path) -> None:
    quick = save_open_clip(tmp_path / "quick", quick_gelu=True)
    model = open_clip.create_model(f"local-dir:{quick}").eval()
    with torch.inference_mode():
        expected = model.encode_text(open_clip.tokenize(list(TEXTS)), normalize=True).numpy()
    found = scored("clip", quick)
    assert np.allclose(found.values, expected, atol=1e-5) and not found.truncated.any()
    slow = save_open_clip(tmp_path / "slow", quick_gelu=False)
    assert not np.allclose(scored("clip", slow).values, expected, atol=1e-4)
    assert scored("clip", quick, (f"{'dog ' * 75}", f"{'dog ' * 76}")).truncated.tolist() == [False, True]


def test_the_weights_that_open_clip_prefers_are_digested(tmp_path: Path) -> None:
    folder = save_open_clip(tmp_path / "clip")
    before, tensors = settings("clip", folder).weights(), torch.load(folder / "open_clip_pytorch_model.bin")
    tensors["text_projection"] *= torch.linspace(0.1, 3, tensors["text_projection"].shape[1])
    values = scored("clip", folder).values
    save_file(tensors, folder / "open_clip_pytorch_model.safetensors")
    assert not np.allclose(scored("clip", folder).values, values, atol=1e-3)
    assert settings("clip", folder).weights() != before


def test_open_clip_downloads_nothing(tmp_path: Path) -> None:
    text = {"context_length": 77, "width": 16, "hf_model_name": "roberta-base"}
    folder = save_open_clip(tmp_path / "clip")
    (folder / "open_clip_config.json").write_text(json.dumps({"embed_dim": 8, "text_cfg": text, "vision_cfg": {}}))
    with pytest.raises(WrongUse, match="text tower is built from another model's files"):
        scored("clip", folder)
    (folder / "open_clip_config.json").write_text("{}")
    with pytest.raises(WrongUse, match="not a configuration of open_clip"):
        scored("clip", folder)


def test_a_language_models_mean_is_that_of_one_text_at_a_time(scorer_folders: dict[str, Path]) -> None:
    folder = scorer_folders["language-model"]
    expected = mean_chances(folder)
    scorer = settings("language-model", folder).open("cpu")
    assert scorer._takes_trees and np.ptp(expected) > 0.5  # type: ignore[attr-defined]
    with torch.inference_mode():
        for micro_batch in (1, 2, 100):
            assert np.allclose(scorer(TEXTS, micro_batch).values, expected, atol=1e-4)


def test_a_tokenizer_with_more_tokens_than_the_network_is_refused(
    scorer_folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(scorer_folders["language-model"], tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "bos_token": "NaN"}))
    with pytest.raises(WrongUse, match=r"model: its tokenizer has \d+ tokens and its network \d+"):
        scored("language-model", folder)


@pytest.mark.parametrize("trees", [True, False])
def test_other_language_models_score_alike(tmp_path: Path, trees: bool) -> None:
    torch.manual_seed(4)
    # GPT-2 looks its positions up; Bloom takes none, so that its texts are read one by one.
    sizes = {"n_layer": 2, "n_head": 2, "initializer_range": 0.5, "vocab_size": 300}
    gpt2, bloom = GPT2Config(n_embd=16, **sizes), BloomConfig(hidden_size=16, **sizes)
    folder = save_language_model(tmp_path / "lm", GPT2LMHeadModel(gpt2) if trees else BloomForCausalLM(bloom))
    scorer = settings("language-model", folder).open("cpu")
    assert scorer._takes_trees == trees  # type: ignore[attr-defined]
    with torch.inference_mode():
        assert np.allclose(scorer(TEXTS, 4).values, mean_chances(folder), atol=1e-4)


@pytest.mark.parametrize("kind", ["vera", "cola", "clip", "language-model"])
def test_padding_and_order_do_not_change_a_score(scorer_folders: dict[str, Path], kind: str) -> None:
    def all_with(texts: tuple[str, ...], micro_batch: int) -> NDArray[Any]:
        return scored(kind, scorer_folders[kind], texts, micro_batch).values

    together, alone = all_with(TEXTS, 100), all_with(TEXTS, 1)
    assert np.allclose(together, alone, atol=1e-5)
    # The same texts in another order are read in the same passes: the very same bits.
    assert np.array_equal(all_with(TEXTS[::-1], 4)[::-1], all_with(TEXTS, 4))


@pytest.mark.parametrize("kind", ["vera", "cola", "clip", "language-model"])
def test_a_long_text_is_cut_and_named(scorer_folders: dict[str, Path], kind: str) -> None:
    long = "A man riding a horse. " * 450_000
    assert len(long) > 9_000_000
    found = scored(kind, scorer_folders[kind], ("A man", long, "A dog."))
    assert found.truncated.tolist() == [False, True, False] and np.isfinite(found.values).all()


def test_what_just_fits_is_not_cut(scorer_folders: dict[str, Path]) -> None:
    fits, longer = "A man" + " man" * (READS - 2), "A man" + " man" * (READS - 1)
    assert scored("language-model", scorer_folders["language-model"], (fits, longer)).truncated.tolist() == [
        False,
        True,
    ]
    assert scored("language-model", scorer_folders["language-model"], (fits,), max_tokens=5).truncated.all()


def test_bfloat16_is_near_float32(scorer_folders: dict[str, Path]) -> None:
    for kind, folder in scorer_folders.items():
        half = scored(kind, folder, precision="bfloat16").values
        whole = scored(kind, folder).values
        assert np.allclose(half, whole, atol=0.3) and not np.array_equal(half, whole), kind
