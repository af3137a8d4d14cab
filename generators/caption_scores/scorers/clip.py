"""CLIP's text tower: how alike two captions are to it (BiVLC, Appendix B, with OpenAI's ViT-B/32)."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from twinset.contracts.source import Place
from twinset.generators.caption_scores.scorers.scorer import CHARACTERS_A_TOKEN, Scored, Scorer, ScorerSettings
from twinset.models.encoders.contract import unit
from twinset.models.encoders.image_towers import InBuild, clip_files, open_clip_encoder
from twinset.models.encoders.open_clip_files import CONFIG

TOKENS = 77  # that CLIP reads


class Clip(ScorerSettings):
    """Cosine of the text embeddings of a caption and its negative.

    model: folder in transformers' layout, or in open_clip's (``open_clip_config.json`` and its weights). OpenAI's
    weights need QuickGELU, which the configuration must say (``quick_gelu``).
    """

    kind: Literal["clip"]
    model: Annotated[str, Place("model", "models")] = Field(min_length=1)

    score = "similarity"
    title = "similarity"
    of_pairs = True

    def libraries(self) -> tuple[str, ...]:
        return ("torch", "open_clip" if clip_files(self.model).paths[0].name == CONFIG else "transformers")

    def weights(self) -> str:
        return clip_files(self.model).digest()

    def open(self, device: str) -> Scorer:
        encoder = open_clip_encoder(self.model, InBuild("cpu" if device == "cpu" else "gpu"))

        def embed(texts: Sequence[str], micro_batch: int) -> Scored:
            read = [text[: TOKENS * CHARACTERS_A_TOKEN] for text in texts]
            starts = range(0, len(read), micro_batch)
            features = [encoder.text_features(read[start : start + micro_batch]) for start in starts]
            cut = {*encoder.too_long(read)}
            truncated = [text in cut or len(text) < len(whole) for text, whole in zip(read, texts, strict=True)]
            return Scored(unit(np.concatenate(features)), np.array(truncated, dtype=np.bool_))

        return embed
