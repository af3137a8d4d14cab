"""Filters of pairs of images: pairs that have moved, and the change of two images along that of their captions."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from transformers import AutoImageProcessor, CLIPModel

from tests.filters.test_filters import FIRST, SECOND
from tests.filters.test_image_filters import CAPTIONS, pair
from tests.models.diffusion.tiny_models import save_clip, tokenizer
from twinset.contracts.kinds.samples import Drop, Keep, Pixels
from twinset_extras.directional_similarity import DirectionalSimilarity
from twinset_extras.drift import Drift

SPOTS = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
SCENE: Pixels = np.asarray(cv2.resize(SPOTS, (400, 320), interpolation=cv2.INTER_CUBIC))


def changed(pixels: Pixels) -> Pixels:
    copy = pixels.copy()
    copy[60:140, 80:200] = 30
    return copy


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed, ""),
        (lambda pixels: np.roll(changed(pixels), 1, axis=1), ""),  # one pixel is allowed, and here hardly seen
        (lambda pixels: np.roll(changed(pixels), 3, axis=1), "moved"),
        (lambda pixels: cv2.resize(changed(pixels)[8:-8, 10:-10], (400, 320)), "moved"),
        (lambda pixels: pixels[:-2], "other-size"),
        (lambda pixels: np.random.default_rng(1).integers(0, 256, pixels.shape, np.uint8), "changed-elsewhere"),
    ],
)
def test_drift(change: Callable[[Pixels], Pixels], reason: str) -> None:
    (verdict,) = Drift(kind="drift", difference=12).judge([pair(SCENE, change(SCENE))])
    assert (verdict.reason if isinstance(verdict, Drop) else "") == reason


def test_flat_pictures_stand_still() -> None:
    flat = np.full_like(SCENE, 90)
    (verdict,) = Drift(kind="drift").judge([pair(flat, flat + 1)])
    assert isinstance(verdict, Keep)


def test_directional_similarity_is_the_cosine_of_both_steps(tmp_path: Path) -> None:
    clip = save_clip(tmp_path)
    model, processor = CLIPModel.from_pretrained(clip), AutoImageProcessor.from_pretrained(clip, backend="pil")
    with torch.inference_mode():
        words = tokenizer(clip / "words")(list(CAPTIONS), padding=True, return_tensors="pt")
        out = model(**processor(images=[FIRST, SECOND], return_tensors="pt"), **words)
    image, text = out.image_embeds[1] - out.image_embeds[0], out.text_embeds[1] - out.text_embeds[0]
    expected = float(image @ text / image.norm() / text.norm())
    judge = DirectionalSimilarity(kind="directional-similarity", model=str(clip)).judge
    pairs = [pair(FIRST, SECOND), pair(SECOND, FIRST, captions=CAPTIONS[::-1]), pair(SECOND, FIRST), pair(FIRST, FIRST)]
    # Both turned round is the same change; one turned round is its opposite.
    assert [score.value for score in judge(pairs)] == pytest.approx([expected, expected, -expected, 0], abs=1e-5)
