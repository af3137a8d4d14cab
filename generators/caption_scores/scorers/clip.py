"""CLIP's text tower: how alike two captions are to it (BiVLC, Appendix B, with OpenAI's ViT-B/32)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from twinset.generators.caption_scores.scorers.checkpoint import checkpoint_files
from twinset.generators.caption_scores.scorers.scorer import Scored, ScorerSettings, Tokens, padded, passes, tokenize
from twinset.manifests.errors import WrongUse
from twinset.models.files import ModelMissing, files_digest, local_folder, read_json
from twinset.models.loading import load_beside, load_network, loading

if TYPE_CHECKING:
    import torch

OPEN_CLIP = "open_clip_config.json"
#: In the order in which open_clip prefers them.
OPEN_CLIP_WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
)
DOWNLOADS = ("hf_model_name", "hf_tokenizer_name", "timm_model_pretrained")  # of open_clip's configurations
Embed = Callable[[NDArray[np.int64], NDArray[np.int64]], "torch.Tensor"]


class Clip(ScorerSettings):
    """Cosine of the text embeddings of a caption and its negative.

    model: folder in transformers' layout, or in open_clip's (``open_clip_config.json`` and its weights). OpenAI's
    weights need QuickGELU, which the configuration must say (``quick_gelu``).
    """

    kind: Literal["clip"]

    column: ClassVar[str] = "similarity"
    of_pairs: ClassVar[bool] = True

    def libraries(self) -> tuple[str, ...]:
        """As `ScorerSettings.libraries`."""
        return ("torch", "open_clip" if _files(self.model)[0].name == OPEN_CLIP else "transformers")

    def weights(self) -> str:
        """As `ScorerSettings.weights`."""
        return files_digest(_files(self.model))

    def open(self, device: str) -> ClipScorer:
        """As `ScorerSettings.open`."""
        return ClipScorer(self, device)


def _files(model: str) -> list[Path]:
    folder = local_folder(
        model, f"A CLIP model is a folder in the layout of transformers or of open_clip ({OPEN_CLIP})"
    )
    if not (folder / OPEN_CLIP).is_file():
        return checkpoint_files(model)
    weights = next((folder / name for name in OPEN_CLIP_WEIGHTS if (folder / name).is_file()), None)
    if weights is None:
        raise ModelMissing(f"the model {model} lacks {' or '.join(OPEN_CLIP_WEIGHTS[::2])}: put it into {folder}")
    return [folder / OPEN_CLIP, weights]


class ClipScorer:
    """A text tower. Nothing after a text's end changes its embedding, so that passes are as long as their texts."""

    def __init__(self, settings: Clip, device: str) -> None:
        first, *_ = _files(settings.model)
        self._tokens: Callable[[Sequence[str]], Tokens]
        self._embed: Embed
        if first.name == OPEN_CLIP:
            self._tokens, self._padding, self._embed = _open_clip(first.parent, settings.precision, device)
        else:
            self._tokens, self._padding, self._embed = _transformers(first.parent, settings.precision, device)

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


def _transformers(folder: Path, precision: str, device: str) -> tuple[Callable[[Sequence[str]], Tokens], int, Embed]:
    import torch
    from transformers import AutoTokenizer, CLIPModel

    tokenizer = load_beside(AutoTokenizer, folder)
    model = load_network(CLIPModel, folder, precision)
    model.vision_model = None  # only texts are read
    model = model.to(device)

    def embed(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> torch.Tensor:
        read = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        ends = model.text_model(**{name: one.to(device) for name, one in read.items()}).pooler_output
        embeds: torch.Tensor = model.text_projection(ends)
        return embeds

    most = int(model.config.text_config.max_position_embeddings)
    return lambda texts: tokenize(tokenizer, texts, most), int(tokenizer.pad_token_id), embed


def _open_clip(folder: Path, precision: str, device: str) -> tuple[Callable[[Sequence[str]], Tokens], int, Embed]:
    import open_clip  # type: ignore[import-untyped]
    import torch
    from torch.nn import Parameter

    config = read_json(folder / OPEN_CLIP).get("model_cfg")
    inner = [one for one in config.values() if isinstance(one, dict)] if isinstance(config, dict) else []
    if any(one.get(name) for one in inner for name in DOWNLOADS):
        raise WrongUse(f"{folder / OPEN_CLIP}: names parts that open_clip would download; name a model without them")
    name = f"local-dir:{folder}"
    with loading(folder):
        tokenizer: Any = open_clip.get_tokenizer(name)
        model: Any = open_clip.create_model(name, precision={"float32": "fp32", "bfloat16": "bf16"}[precision])
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
