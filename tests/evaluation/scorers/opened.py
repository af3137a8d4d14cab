"""What tests of scorers open and encode."""

from collections.abc import Sequence
from typing import Any

from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Composer, DualEncoder, Floats, Matcher, Running

TEXTS = ["a cat on the mat.", "the red dog", "a blue cat " * 20]
FAST = Running(batch=4, threads=1)


def encoder(text: str) -> DualEncoder:
    model = open_model(text, FAST)
    assert isinstance(model, DualEncoder) and not isinstance(model, Matcher | Composer)
    return model


def queries(rule: Composer, images: Sequence[Any], texts: Sequence[str]) -> Floats:
    """What a rule makes of images and texts."""
    prepared = [rule.encoder.prepare(image) for image in images]
    return rule.compose(rule.encoder.image_features(prepared), rule.encoder.text_features(texts), texts)
