"""The change of two images along that of their captions, by a tiny CLIP model."""

from pathlib import Path

import pytest
import torch
from transformers import AutoImageProcessor, CLIPModel

from tests.filters.test_filters import FIRST, SECOND
from tests.filters.test_image_filters import CAPTIONS, pair
from tests.models.diffusion.tiny_models import save_clip, tokenizer
from twinset_extras.directional_similarity import DirectionalSimilarity


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


def test_the_direction_is_one_of_change(clip: Path) -> None:
    judge = DirectionalSimilarity(kind="directional-similarity", model=str(clip)).judge
    pairs = [pair(FIRST, SECOND), pair(SECOND, FIRST, captions=CAPTIONS[::-1]), pair(SECOND, FIRST), pair(FIRST, FIRST)]
    assert {score.name for score in judge(pairs)} == {"direction"}
    there, both_turned, one_turned, nothing = (score.value for score in judge(pairs))
    assert -1 <= there <= 1 and there == judge([pair(FIRST, SECOND)])[0].value
    # Both turned round is the same change; one turned round is its opposite.
    assert both_turned == pytest.approx(there, abs=1e-5) and one_turned == pytest.approx(-there, abs=1e-5)
    assert nothing == 0


def test_a_score_is_the_cosine_of_both_steps(clip: Path) -> None:
    model, processor = CLIPModel.from_pretrained(clip), AutoImageProcessor.from_pretrained(clip, backend="pil")
    with torch.inference_mode():
        said = tokenizer(clip / "words")(list(CAPTIONS), padding=True, return_tensors="pt")
        out = model(**processor(images=[FIRST, SECOND], return_tensors="pt"), **said)
    image, text = out.image_embeds[1] - out.image_embeds[0], out.text_embeds[1] - out.text_embeds[0]
    (score,) = DirectionalSimilarity(kind="directional-similarity", model=str(clip)).judge([pair(FIRST, SECOND)])
    assert score.value == pytest.approx(float(image @ text / image.norm() / text.norm()), abs=1e-5)
