"""Directional text-image similarity (Gal et al. 2021, arXiv 2108.00946): does the image change as its caption does?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import CLIPImageProcessor, CLIPModel, CLIPTokenizer

from generators.edited_pairs.gpu import within_memory
from generators.edited_pairs.scorer_files import scorer_folder
from manifests.errors import WrongUse
from shards.kinds.samples import Pixels

#: Equal inputs can be this far apart between unit embeddings, by their places in a batch; such a step has no direction.
ROUNDING = 1e-5


class Scorer:
    """A CLIP model in float32, from safetensors."""

    def __init__(self, name: str, device: str) -> None:
        folder: Path = scorer_folder(name)
        options: dict[str, Any] = {"local_files_only": True}
        self._name, self._device = name, device
        self._processor = CLIPImageProcessor.from_pretrained(folder, **options)
        self._tokenizer = CLIPTokenizer.from_pretrained(folder, **options)
        model: Any = CLIPModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **options)
        self._model = model.to(device).eval()

    @torch.inference_mode()
    def direction(self, images: tuple[Pixels, Pixels], captions: tuple[str, str]) -> float:
        """Cosine of the step from image 0 to image 1 and the step from caption 0 to caption 1, both between unit
        embeddings: 1 where the images change as the captions do, 0 where one has nothing to do with the other, or
        nothing changes.

        Raises `WrongUse` for a caption with more tokens than the model reads, which would score its beginning only, and
        `OutOfMemory`.
        """
        return within_memory(lambda: self._direction(images, captions))

    def _direction(self, images: tuple[Pixels, Pixels], captions: tuple[str, str]) -> float:
        seen = self._processor(images=[np.asarray(image) for image in images], return_tensors="pt")
        said = self._tokenizer(list(captions), padding=True, return_tensors="pt")
        read, tokens = self._model.config.text_config.max_position_embeddings, said["attention_mask"].sum(1)
        if tokens.max() > read:
            raise WrongUse(
                f"source.scorer: the caption {captions[int(tokens.argmax())]!r} has {int(tokens.max())} tokens, the "
                f"scorer {self._name} reads {read}; name another scorer, or none"
            )
        out = self._model(**seen.to(self._device), **said.to(self._device))
        change = torch.stack([out.image_embeds[1] - out.image_embeds[0], out.text_embeds[1] - out.text_embeds[0]])
        if change.norm(dim=1).min() < ROUNDING:
            return 0.0
        return float(torch.nn.functional.cosine_similarity(change[0], change[1], dim=0))
