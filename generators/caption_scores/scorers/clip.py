"""CLIP's text tower: how alike two captions are to it (BiVLC, Appendix B, with OpenAI's ViT-B/32)."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.contracts.source import Place
from twinset.generators.caption_scores.scorers.scorer import Scorer, ScorerSettings
from twinset.models.encoders.contract import unit
from twinset.models.encoders.image_towers import InBuild, clip_files, open_clip_encoder
from twinset.models.encoders.open_clip_files import CONFIG


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

        def embed(texts: Sequence[str], micro_batch: int) -> NDArray[np.float32]:
            starts = range(0, len(texts), micro_batch)
            return unit(np.concatenate([encoder.text_features(texts[start : start + micro_batch]) for start in starts]))

        return embed
