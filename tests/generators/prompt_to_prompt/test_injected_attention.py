"""Fused injection against the definition: probabilities made, edited as the paper's section 3.2 writes it, and used.

Models whose files are cut short, lack weights, or belong to several models.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import load_file, save_file
from transformers import CLIPTokenizer

from tests.generators.prompt_to_prompt.tiny_models import CHANNELS_14, unet_14, unet_xl
from twinset.contracts.errors import WrongUse
from twinset.generators.prompt_to_prompt.alignment import (
    Edit,
    EditError,
    Schedule,
    Tokens,
    align,
    equalizer,
    occurrences,
    replaced_steps,
)
from twinset.generators.prompt_to_prompt.attention import Injection, LocalBlend, cross_attention_sizes
from twinset.generators.prompt_to_prompt.pipeline import load_model
from twinset.models.diffusion.model_files import model_digest, model_folder, weights_digest
from twinset.models.files import ModelMissing


def test_a_folder_that_is_not_there_is_told_from_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ModelMissing, match=r"no model folder /models/sd: put .* unet/diffusion_pytorch_model.safetensors"
    ):
        load_model("/models/sd", "cpu")
    with pytest.raises(ModelMissing, match=r"no model folder ~nobody-of-that-name/sd that can be read .* home"):
        load_model("~nobody-of-that-name/sd", "cpu")
    with pytest.raises(ModelMissing, match=r"no model folder /xxx.* that can be read .*too long"):
        load_model("/" + "x" * 5000, "cpu")
    with pytest.raises(ModelMissing, match=r"neither a folder here nor in the Hugging Face cache.*`hf download own/sd"):
        load_model("own/sd", "cpu")
    with pytest.raises(ModelMissing, match="own--sd/x is neither a folder here"):  # no id that the hub would take
        load_model("own--sd/x", "cpu")
    (tmp_path / "own/sd").mkdir(parents=True)
    with pytest.raises(ModelMissing, match=r"the model own/sd lacks model_index.json: put them into own/sd"):
        load_model("own/sd", "cpu")


def test_a_cached_hub_id_is_found_and_nothing_is_downloaded(
    saved: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--own--sd/snapshots/0123456789abcdef0123456789abcdef01234567"
    shutil.copytree(saved("small"), snapshot)
    (tmp_path / "models--own--sd/refs").mkdir()
    (tmp_path / "models--own--sd/refs/main").write_text(snapshot.name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert model_folder("own/sd") == snapshot
    assert model_digest("own/sd") == model_digest(str(saved("small")))


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        ("small", "unet/diffusion_pytorch_model.safetensors"),
        ("small", "text_encoder/config.json"),
        ("small", "scheduler/scheduler_config.json"),
        ("sdxl", "text_encoder_2/model.fp16.safetensors"),
    ],
)
def test_what_is_missing_is_named(saved: Callable[[str], Path], tmp_path: Path, kind: str, lost: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved(kind), folder)
    (folder / lost).unlink()
    with pytest.raises(ModelMissing, match=f"lacks {lost.replace('.fp16', '')}: put them into {folder}"):
        load_model(str(folder), "cpu")


def test_pickled_weights_are_not_read(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    weights = folder / "unet/diffusion_pytorch_model.safetensors"
    torch.save({}, weights.with_suffix(".bin"))
    weights.unlink()
    with pytest.raises(ModelMissing, match="safetensors"):
        load_model(str(folder), "cpu")


def test_a_configuration_that_cannot_be_read_is_named(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    for content in ("version https://git-lfs.github.com/spec/v1", "[]"):
        (folder / "model_index.json").write_text(content)
        with pytest.raises(WrongUse, match=rf"{folder}/model_index.json: no.* JSON.*; get the file again"):
            model_folder(str(folder))


def test_the_digest_is_of_what_the_model_draws_with(saved: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved("small"), folder)
    files = weights_digest(str(folder))
    assert {"unet/diffusion_pytorch_model.safetensors", "vae/config.json", "tokenizer/tokenizer.json"} <= set(files)
    (folder / "README.md").write_text("about it")
    assert weights_digest(str(folder)) == files
    (folder / "scheduler/scheduler_config.json").write_text("{}")
    changed = weights_digest(str(folder))
    assert {name for name in files if files[name] != changed[name]} == {"scheduler/scheduler_config.json"}


def test_parts_have_the_asked_precision_but_an_autoencoder_that_would_overflow(saved: Callable[[str], Path]) -> None:
    sdxl = load_model(str(saved("sdxl")), "cpu", torch.float16)
    assert (sdxl.unet.dtype, sdxl.text_encoder_2.dtype, sdxl.vae.dtype) == (torch.float16, torch.float16, torch.float32)
    exact = load_model(str(saved("stable-diffusion-1.4")), "cpu").vae.state_dict()
    half = load_model(str(saved("stable-diffusion-1.4")), "cpu", torch.float16).vae.state_dict()
    assert all(torch.equal(half[name], exact[name]) for name in exact)
    assert load_model(str(saved("small")), "cpu", torch.float16).vae.dtype == torch.float16
    assert load_model(str(saved("small")), "cpu").unet.dtype == torch.float32


CAPTIONS = ("A photo of a cat.", "A photo of a dog, a big Dog.")


def test_words_are_found_whole_in_any_case_and_before_punctuation() -> None:
    assert [CAPTIONS[1][slice(*span)] for span in occurrences(CAPTIONS[1], "dog")] == ["dog", "Dog"]
    assert occurrences(CAPTIONS[0], "photo of") == [(2, 10)]
    with pytest.raises(EditError, match="'pho' is not a word of the caption"):
        occurrences(CAPTIONS[0], "pho")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cross_replace_steps": 1.2}, "cross_replace_steps is 1.2"),
        ({"self_replace_steps": float("nan")}, "self_replace_steps is nan"),
        ({"word_replace_steps": {"dog": -0.1}}, "word_replace_steps"),
        ({"word_replace_steps": {"cat": 0.1}}, "'cat' is not a word of the caption 'A photo of a dog"),
        ({"blend": ("dog", "dog")}, "'dog' is not a word of the caption 'A photo of a cat"),
        ({"blend": ("cat", " ")}, "' ' is not a word"),
        ({"region": ("dog", "dog")}, "'dog' is not a word of the caption 'A photo of a cat"),
        ({"region": ("cat", "dog"), "blend": ("photo", "photo")}, "the change is in one place, leave region out"),
        ({"weights": {"cat": 2.0}}, "'cat' is not a word of the caption"),
        ({"weights": {"dog": float("inf")}}, "give a finite factor"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(EditError, match=message):
        Edit(CAPTIONS, **wrong)  # type: ignore[arg-type]


EDITS = [
    Edit(("a cat eating soup", "a giraffe eating soup"), 0.5, 0.4, weights={"soup": 3.0}),
    Edit(("a photo of a cat", "a photo of a red cat in the winter"), 0.8, 0.0, {"cat": 0.2}),
    Edit.plain(("a cat", "a dog")),
    Edit(("a red circle", "a blue circle"), 1.0, 1.0, blend=("red", "blue"), weights={"circle": -1.0}),
    Edit(("a cat", "a cat in the winter"), 0.0, 0.0, {"winter": 0.7}, weights={"winter": 4.0}),
]
N, HEADS, PIXELS, WIDTH, STEPS = len(EDITS), 3, 16, 8, 10
SCALE = WIDTH**-0.5
CPU = torch.device("cpu")


def random(rows: int, tokens: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, HEADS, tokens, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("index", [0, 3, 6, 9])
def test_cross_attention(words: CLIPTokenizer, index: int, guided: bool) -> None:
    alignments = [align(edit.captions, words) for edit in EDITS]
    rows = 4 * N if guided else 2 * N
    q, k, v = random(rows, PIXELS, 1), random(rows, 77, 2), random(rows, 77, 3)
    injection = Injection(N, 256, LocalBlend(EDITS, alignments, (4, 4), CPU))
    injection.step = Schedule(EDITS, alignments, STEPS).step(index, CPU, torch.float64)
    fused = injection.cross_attention(q, k, v, SCALE)

    probabilities = (q @ k.transpose(2, 3) * SCALE).softmax(-1)
    for n, (edit, alignment) in enumerate(zip(EDITS, alignments, strict=True)):
        own, source = probabilities[rows - N + n].clone(), probabilities[rows - 2 * N + n]
        edited = alignment.captions[1]
        replaced = source @ alignment.source.double() + own * alignment.edited
        for word, factor in edit.weights.items():
            replaced[..., edited.of_word(word)] *= factor
        for token in range(77):
            share = edit.cross_replace_steps
            for word, of_word in edit.word_replace_steps.items():
                share = of_word if token in edited.of_word(word) else share
            if index < int(share * (STEPS + 1)):
                own[..., token] = replaced[..., token]
        probabilities[rows - N + n] = own
    torch.testing.assert_close(fused, probabilities @ v, atol=1e-6, rtol=0)
    assert injection.blend is not None
    for side, word in enumerate(("red", "blue")):
        (token,) = alignments[3].captions[side].of_word(word)
        of_word = probabilities[rows - (2 - side) * N + 3, :, :, token].mean(0).reshape(4, 4)
        torch.testing.assert_close(injection.blend.maps[side, 3], of_word.float(), atol=1e-5, rtol=0)


def test_self_attention_takes_the_sources_maps_where_and_when_asked(words: CLIPTokenizer) -> None:
    schedule = Schedule(EDITS, [align(edit.captions, words) for edit in EDITS], STEPS)
    q, k, v = (random(4 * N, PIXELS, seed) for seed in (1, 2, 3))
    probabilities = (q @ k.transpose(2, 3) * SCALE).softmax(-1)
    own = probabilities @ v
    for index, taken in ((0, [True, False, False, True, False]), (5, [False, False, False, True, False])):
        expected = own.clone()
        for n in range(N):
            if taken[n]:
                expected[3 * N + n] = probabilities[2 * N + n] @ v[3 * N + n]
        injection = Injection(N, PIXELS, None)
        injection.step = schedule.step(index, CPU, torch.float64)
        torch.testing.assert_close(injection.self_attention(q, k, v, SCALE), expected)
        injection.max_self_tokens = PIXELS - 1
        torch.testing.assert_close(injection.self_attention(q, k, v, SCALE), own)


def test_local_blend_keeps_what_is_outside_the_words_attention(words: CLIPTokenizer) -> None:
    alignments = [align(edit.captions, words) for edit in EDITS]
    blend = LocalBlend(EDITS, alignments, (4, 4), CPU)
    q, k = random(4 * N, PIXELS, 1).float(), random(4 * N, 77, 2).float()
    (red,) = alignments[3].captions[0].of_word("red")
    (blue,) = alignments[3].captions[1].of_word("blue")
    q[:, :, :, 0], k[:, :, :, 0] = 0.0, 0.0
    q[:, :, 0, 0], k[2 * N + 3, :, red, 0], k[3 * N + 3, :, blue, 0] = 40.0, 40.0, 40.0  # all at the upper left pixel
    blend.observe(q, k, SCALE, Schedule(EDITS, alignments, STEPS).step(9, CPU, torch.float32))
    masks = blend.masks((8, 8))
    assert masks[:3].all()  # no blend was asked for there
    assert masks[3].nonzero().amax(0).tolist() == [3, 3]  # a pixel wider, at twice the size
    latents = random(2 * N, 64, 5).float().reshape(2 * N, -1, 8, 8)
    blended = blend.blend(latents, 9, STEPS)
    assert torch.equal(blended[: N + 3], latents[: N + 3])
    assert torch.equal(blended[N + 4], latents[N + 4])
    assert torch.equal(blended[N + 3], torch.where(masks[3], latents[N + 3], latents[3]))
    assert torch.equal(blend.blend(latents, 1, STEPS), latents)  # too early
    seen = [*EDITS[:3], replace(EDITS[3], blend=None, region=("red", "blue")), EDITS[4]]
    region = LocalBlend(seen, alignments, (4, 4), CPU)
    region.observe(q, k, SCALE, Schedule(seen, alignments, STEPS).step(9, CPU, torch.float32))
    assert torch.equal(region.masks((8, 8)), masks) and torch.equal(region.blend(latents, 9, STEPS), latents)


def test_the_random_unets_are_built_as_the_real_ones() -> None:
    """At the real widths they have the published numbers of parameters, 860 million and 2.6 billion."""
    with torch.device("meta"):
        unet = unet_14(CHANNELS_14, context=768)
        xl = unet_xl((320, 640, 1280), heads=(5, 10, 20), context=2048, pooled=1280, sizes=256, groups=32)
    assert unet.num_parameters() == 859_520_964
    assert xl.num_parameters() == 2_567_463_684
    assert cross_attention_sizes(unet, 64, 64) == [(64, 64), (32, 32), (16, 16), (8, 8)]
    assert cross_attention_sizes(unet, 7, 12) == [(7, 12), (4, 6), (2, 3), (1, 2)]
    assert cross_attention_sizes(xl, 128, 128) == [(64, 64), (32, 32)]


UNET = "unet/diffusion_pytorch_model.safetensors"
TEXT = "text_encoder/model.safetensors"


@pytest.fixture
def copied(saved: Callable[[str], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved("small"), tmp_path / "model"))


def _set(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **values}))


@pytest.mark.parametrize("weights", [UNET, TEXT, "vae/diffusion_pytorch_model.safetensors"])
def test_weights_that_are_missing_are_not_drawn_at_random(copied: Path, weights: str) -> None:
    tensors = load_file(copied / weights)
    del tensors[min(tensors)]
    save_file(tensors, copied / weights, metadata={"format": "pt"})
    with pytest.raises(
        WrongUse, match=r"/(unet|vae|text_encoder): the weights lack 1 tensors .*be random; .*get its files again"
    ):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize("weights", [UNET, TEXT])
def test_weights_that_are_cut_short_are_named(copied: Path, weights: str) -> None:
    (copied / weights).write_bytes((copied / weights).read_bytes()[:1000])
    with pytest.raises(WrongUse, match=rf"{copied}/{weights.split('/')[0]}: cannot be loaded .*get its files again"):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize(
    ("file", "values", "problem"),
    [
        ("unet/config.json", {"sample_size": None}, "sample_size is None; write the side"),
        ("unet/config.json", {"block_out_channels": [16, 32, 64]}, "cannot be loaded"),
        ("vae/config.json", {"latent_channels": 8}, "cannot be loaded"),
        ("scheduler/scheduler_config.json", {"num_train_timesteps": 10**12}, "num_train_timesteps must be a whole"),
        ("scheduler/scheduler_config.json", {"prediction_type": "x"}, "prediction_type is 'x'; it must be one of eps"),
        ("scheduler/scheduler_config.json", {"beta_schedule": "x"}, "cannot be loaded"),
        ("tokenizer/tokenizer_config.json", {"model_max_length": 10**30}, "model_max_length must be a whole number up"),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(
    copied: Path, file: str, values: dict[str, Any], problem: str
) -> None:
    _set(copied / file, **values)
    with pytest.raises(WrongUse, match=rf"{copied}/{file.split('/')[0]}.*{problem}"):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"in_channels": 9}, "the UNet takes 9 channels and gives 4, the autoencoder reads 4; name a text-to-image"),
        ({"cross_attention_dim": 24}, "text encoders give 32 channels, the UNet reads 24"),
        (
            {"down_block_types": ["DownBlock2D"] * 3, "up_block_types": ["UpBlock2D"] * 3, "mid_block_type": None},
            "unet: has no cross-attention",
        ),
    ],
)
def test_a_unet_of_another_kind_of_model_is_refused(copied: Path, changed: dict[str, Any], problem: str) -> None:
    config = json.loads((copied / "unet/config.json").read_bytes())
    UNet2DConditionModel.from_config({**config, **changed}).save_pretrained(copied / "unet")
    with pytest.raises(WrongUse, match=problem):
        load_model(str(copied), "cpu")


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ({}, "weight_map must give the file of each tensor"),
        ({"weight_map": {"a": 1}}, "weight_map must give the file of each tensor"),
        ({"weight_map": {"a": "../../other.safetensors"}}, "leaves the folder"),
        ({"weight_map": {"a": "pieces.bin"}}, "'pieces.bin' is no safetensors file"),
    ],
)
def test_an_index_that_is_none_is_named(copied: Path, index: dict[str, Any], problem: str) -> None:
    (copied / UNET).unlink()
    file = copied / f"{UNET}.index.json"
    file.write_text(json.dumps(index))
    with pytest.raises(WrongUse, match=rf"{file}: .*{problem}"):
        model_folder(str(copied))


SWAP = ("a photo of a cat on the soup", "a photo of a dog on the soup")
LONGER = ("a cat eating soup", "a giraffe eating soup")  # giraffe: 7 tokens
ADDED = ("a photo of a cat", "a photo of a red cat in the winter")


def sources_of(alignment_source: torch.Tensor, tokens: list[int]) -> list[list[int]]:
    return [alignment_source[:, token].nonzero()[:, 0].tolist() for token in tokens]


def test_tokens_know_their_words_by_offset(words: CLIPTokenizer) -> None:
    tokens = Tokens.of("A photo of a  Giraffe, eating soup.", words)
    assert [len(positions) for _, positions in tokens.words()] == [1, 1, 1, 1, 8, 1, 2]
    assert tokens.of_word("giraffe") == [5, 6, 7, 8, 9, 10, 11]
    assert tokens.of_word("soup") == [14]
    assert tokens.of_word("a") == [1, 4]


def test_a_swapped_word_takes_the_source_words_place(words: CLIPTokenizer) -> None:
    alignment = align(SWAP, words)
    assert alignment.kind == "replacement"
    assert torch.equal(alignment.source, torch.eye(77))
    assert not alignment.edited.any()


def test_a_longer_word_shares_the_source_words_attention_and_the_rest_follows_its_words(words: CLIPTokenizer) -> None:
    alignment = align(LONGER, words)
    source, edited = alignment.captions
    giraffe, cat = edited.of_word("giraffe"), source.of_word("cat")
    assert len(giraffe) == 7
    assert alignment.source[cat][:, giraffe].tolist() == [pytest.approx([1 / 7] * 7)]
    for word in ("a", "eating", "soup"):
        assert sources_of(alignment.source, edited.of_word(word)) == [source.of_word(word)]
    assert sources_of(alignment.source, [len(edited.ids) - 1, len(edited.ids)]) == [
        [len(source.ids) - 1],
        [len(edited.ids)],
    ]


def test_a_shorter_word_takes_all_its_tokens_attention(words: CLIPTokenizer) -> None:
    alignment = align((LONGER[1], LONGER[0]), words)
    source, edited = alignment.captions
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("giraffe")]
    assert sources_of(alignment.source, edited.of_word("soup")) == [source.of_word("soup")]


def test_added_words_keep_their_own_attention(words: CLIPTokenizer) -> None:
    alignment = align(ADDED, words)
    source, edited = alignment.captions
    new = edited.of_word("red") + edited.of_word("in the winter")
    assert alignment.kind == "refinement"
    assert alignment.edited.nonzero()[:, 0].tolist() == new
    assert not alignment.source[:, new].any()
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("cat")]
    assert torch.equal(alignment.source.sum(0) + alignment.edited, torch.ones(77))


def test_removed_words_leave_the_others_aligned(words: CLIPTokenizer) -> None:
    alignment = align((ADDED[1], ADDED[0]), words)
    source, edited = alignment.captions
    assert sources_of(alignment.source, edited.of_word("cat")) == [source.of_word("cat")]
    assert not alignment.edited.any()


def test_equal_captions_align_one_to_one(words: CLIPTokenizer) -> None:
    assert torch.equal(align((SWAP[0], SWAP[0]), words).source, torch.eye(77))


def test_a_caption_that_the_model_would_cut_is_refused(words: CLIPTokenizer) -> None:
    with pytest.raises(EditError, match="has 80 tokens, the model reads 77: shorten it"):
        align(("a cat", "a " * 78), words)


def test_words_have_their_own_steps_and_factors(words: CLIPTokenizer) -> None:
    edit = Edit(SWAP, cross_replace_steps=1.0, word_replace_steps={"dog": 0.4}, weights={"soup": -2.0})
    alignment = align(SWAP, words)
    (dog,), (soup,) = alignment.captions[1].of_word("dog"), alignment.captions[1].of_word("soup")
    replaced = replaced_steps(edit, alignment, steps=10)
    assert replaced[:, dog].tolist() == [1.0] * 4 + [0.0] * 6  # int(0.4 * 11)
    assert replaced[:, soup].all()
    assert equalizer(edit, alignment).tolist() == [-2.0 if at == soup else 1.0 for at in range(77)]
