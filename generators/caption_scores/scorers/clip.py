"""CLIP's text tower: how alike two captions are to it (BiVLC, Appendix B, with OpenAI's ViT-B/32)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.caption_scores.scorers.scorer import (
    LAYOUT,
    NetworkScorer,
    Scored,
    Tokens,
    padded,
    passes,
    tokenize,
)
from twinset.models.encoders.open_clip_files import CONFIG, FILES, find_checkpoint
from twinset.models.encoders.open_clip_models import load_network
from twinset.models.files import Layout, ModelFiles, find_model, local_folder
from twinset.models.loading import load_with_tokenizer

if TYPE_CHECKING:
    import torch

OPEN_CLIP = Layout(
    f"A CLIP of open_clip is a folder with {CONFIG} and its weights", ((CONFIG,), FILES), (CONFIG, FILES)
)
Embed = Callable[[NDArray[np.int64], NDArray[np.int64]], "torch.Tensor"]
TextTower = tuple[Callable[[Sequence[str]], Tokens], int, Embed]  # tokenizer, padding, network


class Clip(NetworkScorer):
    """Cosine of the text embeddings of a caption and its negative.

    model: folder in transformers' layout, or in open_clip's (``open_clip_config.json`` and its weights). OpenAI's
    weights need QuickGELU, which the configuration must say (``quick_gelu``).
    """

    kind: Literal["clip"]

    score = "similarity"
    title = "similarity"
    of_pairs = True

    def libraries(self) -> tuple[str, ...]:
        return ("torch", "open_clip" if _files(self.model).paths[0].name == CONFIG else "transformers")

    def weights(self) -> str:
        return _files(self.model).digest()

    def open(self, device: str) -> ClipScorer:
        return ClipScorer(self, device)


def _files(model: str) -> ModelFiles:
    return find_model(model, OPEN_CLIP if (local_folder(model, LAYOUT.words) / CONFIG).is_file() else LAYOUT)


class ClipScorer:
    """A text tower. Nothing after a text's end changes its embedding, so that passes are as long as their texts."""

    def __init__(self, settings: Clip, device: str) -> None:
        files = _files(settings.model)
        self._tokens: Callable[[Sequence[str]], Tokens]
        self._embed: Embed
        opening = _open_clip if files.paths[0].name == CONFIG else _transformers
        self._tokens, self._padding, self._embed = opening(files, settings.precision, device)

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: unit embeddings."""
        tokens = self._tokens(texts)
        values: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
        for places in passes(tokens.ids, micro_batch):
            embedded = self._embed(*padded([tokens.ids[place] for place in places], self._padding)).float()
            unit = (embedded / embedded.norm(dim=1, keepdim=True)).cpu().numpy()
            for place, value in zip(places, unit, strict=True):
                values[place] = value
        return Scored(np.stack(values), tokens.truncated)


def _transformers(files: ModelFiles, precision: str, device: str) -> TextTower:
    import torch

    tokenizer, model = load_with_tokenizer("CLIPModel", files, precision)
    model.vision_model = None  # only texts are read
    model = model.to(device)

    def embed(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> torch.Tensor:
        read = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        ends = model.text_model(**{name: one.to(device) for name, one in read.items()}).pooler_output
        embeds: torch.Tensor = model.text_projection(ends)
        return embeds

    most = int(model.config.text_config.max_position_embeddings)
    return lambda texts: tokenize(tokenizer, texts, most), int(tokenizer.pad_token_id), embed


def _open_clip(files: ModelFiles, precision: str, device: str) -> TextTower:
    import open_clip  # type: ignore[import-untyped]
    import torch
    from torch.nn import Parameter

    folder = str(files.folder)
    architecture, path = find_checkpoint(f"open_clip:{folder}", [folder])
    model, tokenizer = load_network(architecture, path, {"float32": "fp32", "bfloat16": "bf16"}[precision])
    if not isinstance(model, open_clip.CLIP) or not isinstance(tokenizer, open_clip.SimpleTokenizer):
        raise WrongUse(f"{folder}: not a CLIP with CLIP's own tokenizer; name one such as ViT-B-32 of OpenAI")
    model.visual = None  # only texts are read
    model = model.to(device).eval()
    positions, attention = model.positional_embedding.detach(), model.attn_mask
    begin, end, most = int(tokenizer.sot_token_id), int(tokenizer.eot_token_id), len(positions)

    def tokens(texts: Sequence[str]) -> Tokens:
        inner = [tokenizer.encode(text[: most * 100]) for text in texts]
        truncated = np.array([len(one) + 2 > most for one in inner], dtype=np.bool_)
        return Tokens([[begin, *one[: most - 2], end] for one in inner], truncated)

    def embed(ids: NDArray[np.int64], _mask: NDArray[np.int64]) -> torch.Tensor:
        length = ids.shape[1]
        model.positional_embedding = Parameter(positions[:length], requires_grad=False)
        model.attn_mask = attention[:length, :length]
        embeds: torch.Tensor = model.encode_text(torch.from_numpy(ids).to(device))
        return embeds

    return tokens, 0, embed  # its end of a text is the highest token: zeros come after it
