"""The change of two images along that of their captions, by a tiny CLIP model."""

from pathlib import Path

import pytest
import torch
from transformers import AutoImageProcessor, CLIPModel

from tests.filters.test_filters import FIRST, SECOND
from tests.filters.test_image_filters import CAPTIONS, pair
from tests.models.diffusion.tiny_models import save_clip, tokenizer
from twinset_extras.directional_similarity import DirectionalSimilarity


def test_a_score_is_the_cosine_of_both_steps(tmp_path: Path) -> None:
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
