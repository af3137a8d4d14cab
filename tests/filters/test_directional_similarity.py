"""Directional similarity, with a tiny CLIP model of random weights."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import CLIPImageProcessor, CLIPModel

from tests.generators.prompt_to_prompt.tiny_models import TOKENS, save_clip, tokenizer
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, MediaFile, Pixels
from twinset.contracts.parts import OutOfMemory
from twinset.filters.directional_similarity import DirectionalSimilarity, DirectionalSimilarityFilter
from twinset.models import files
from twinset.models.encoders.image_towers import clip_files
from twinset.models.files import ModelMissing

FIRST, SECOND, THIRD = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), np.uint8)
CAPTIONS = ("A photo of a red circle.", "A photo of a blue circle.")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def scoring(clip: Path, **settings: Any) -> DirectionalSimilarityFilter:
    chosen = DirectionalSimilarity(kind="directional-similarity", model=str(clip), **settings)
    return chosen.open()


def pair(image0: Pixels, image1: Pixels, captions: tuple[str, str] = CAPTIONS) -> Pair:
    frames = [
        Frame(f"a#{side}", pixels, -1.0, MediaFile("made", 0, "")) for side, pixels in enumerate((image0, image1))
    ]
    return Pair(
        key="a",
        group="a",
        split="test",
        change="made",
        image0=frames[0],
        image1=frames[1],
        captions0=(captions[0],),
        captions1=(captions[1],),
        provenance={},
    )


def test_the_direction_is_one_of_change(clip: Path) -> None:
    judge = scoring(clip)
    pairs = [pair(FIRST, SECOND), pair(SECOND, FIRST, CAPTIONS[::-1]), pair(SECOND, FIRST), pair(FIRST, FIRST)]
    assert {score.name for score in judge(pairs)} == {"direction"}
    there, both_turned, one_turned, nothing = (score.value for score in judge(pairs))
    assert -1 <= there <= 1 and there == judge([pair(FIRST, SECOND)])[0].value
    # Both turned round is the same change; one turned round is its opposite.
    assert both_turned == pytest.approx(there, abs=1e-5) and one_turned == pytest.approx(-there, abs=1e-5)
    assert nothing == 0


def test_a_score_is_the_cosine_of_both_steps(clip: Path) -> None:
    model, processor = CLIPModel.from_pretrained(clip), CLIPImageProcessor.from_pretrained(clip)
    with torch.inference_mode():
        said = tokenizer(clip / "words")(list(CAPTIONS), padding=True, return_tensors="pt")
        out = model(**processor(images=[FIRST, SECOND], return_tensors="pt"), **said)
    image, text = out.image_embeds[1] - out.image_embeds[0], out.text_embeds[1] - out.text_embeds[0]
    (score,) = scoring(clip)([pair(FIRST, SECOND)])
    assert score.value == pytest.approx(float(image @ text / image.norm() / text.norm()), abs=1e-5)


def test_a_score_does_not_depend_on_the_other_pairs_of_its_pass(clip: Path) -> None:
    judge = scoring(clip, micro_batch=2)
    longer = ("A photo of a large red circle on the left.", "A photo of a large red circle on the right.")
    pairs = [pair(FIRST, SECOND), pair(SECOND, THIRD, longer), pair(THIRD, FIRST)]
    assert judge(pairs) == [judge([one])[0] for one in pairs]


def test_threads_and_precision_of_the_source_stay(clip: Path) -> None:
    """Else what a source draws after the first pass of a filter would round otherwise than before."""
    threads, matmul = torch.get_num_threads(), torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, True  # pytest's monkeypatch cannot put it back
    try:
        scoring(clip, threads=threads + 1)([pair(FIRST, SECOND)])
        assert torch.get_num_threads() == threads and matmul.allow_tf32
    finally:
        matmul.allow_tf32 = before


def test_a_caption_is_never_scored_by_its_beginning(clip: Path) -> None:
    longest = " ".join(["red"] * (TOKENS - 2))
    assert -1 <= scoring(clip)([pair(FIRST, SECOND, (CAPTIONS[0], longest))])[0].value <= 1
    with pytest.raises(WrongUse, match=r"reads only the beginning of the caption 'red .* red'; name another"):
        scoring(clip)([pair(FIRST, SECOND, (CAPTIONS[0], f"{longest} red"))])


def test_memory_that_runs_out_is_told_from_other_trouble(clip: Path) -> None:
    judge = scoring(clip)
    judge._clip.model.vision_model.register_forward_pre_hook(lambda *_: torch.empty(1 << 50))
    with pytest.raises(OutOfMemory, match="can't allocate memory"):
        judge([pair(FIRST, SECOND)])


def test_its_files_are_read_once(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = scoring(clip).weights()
    assert digests.keys() == {"model"}
    monkeypatch.setattr(files, "sha256_of_file", lambda path: pytest.fail(f"{path} is read again"))
    assert scoring(clip).weights() == digests


def test_its_files_are_looked_for_and_digested(clip: Path, tmp_path: Path) -> None:
    shutil.copytree(clip, tmp_path / "copy")
    assert clip_files(str(clip)).folder == clip
    assert scoring(tmp_path / "copy").weights() == scoring(clip).weights()
    (tmp_path / "copy/added_tokens.json").write_text("{}")
    assert scoring(tmp_path / "copy").weights() != scoring(clip).weights()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelMissing, match=r"lacks model\.safetensors .*, preprocessor_config\.json, tokenizer\.json"):
        clip_files(str(tmp_path))


def test_a_gpu_that_is_not_there_is_named(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(WrongUse, match="device of filter directional-similarity is gpu, but torch finds no CUDA"):
        scoring(clip, device="gpu").device()
    assert scoring(clip).device() == "cpu"
