"""The mean log-probability of a text's tokens under a causal language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from twinset.contracts.errors import WrongUse
from twinset.generators.caption_scores.scorers.scorer import NetworkScorer, Scored, passes, tokenize
from twinset.models.language_models.settings import find_language_model
from twinset.models.loading import load_with_tokenizer

IGNORED = -100  # of torch's cross entropy: tokens that are no token of the text


class LanguageModel(NetworkScorer):
    """Mean log-probability of a token, in nats; higher is more fluent.

    model: as `models.language_models.settings.Transformers.model`. max_tokens: what is read of a longer text.
    """

    kind: Literal["language-model"]
    max_tokens: int = Field(default=256, ge=1, le=8192)

    score = "lm"
    title = "language-model score"
    unit = "nats a token"
    reach = 2.0  # a lot, of a mean log-probability
    extra = "language-models"

    def libraries(self) -> tuple[str, ...]:
        return find_language_model(self.model).libraries

    def weights(self) -> str:
        return find_language_model(self.model).digest()

    def open(self, device: str) -> LanguageModelScorer:
        return LanguageModelScorer(self, device)


class LanguageModelScorer:
    """A causal language model."""

    def __init__(self, settings: LanguageModel, device: str) -> None:
        files = find_language_model(settings.model)
        self._tokenizer, model = load_with_tokenizer("AutoModelForCausalLM", files, settings.precision)
        self._model, self._device = model.to(device), device
        begin = self._tokenizer.bos_token_id
        self._begin = self._tokenizer.eos_token_id if begin is None else begin  # GPT-2 has one token for both
        if self._begin is None:
            raise WrongUse(
                f"{files.folder / files.gguf}: its tokenizer has no token for the beginning of a text; name another "
                "model"
            )
        positions = getattr(model.config, "max_position_embeddings", settings.max_tokens)
        self._most = min(settings.max_tokens, int(positions) - 1)

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: of a text of n tokens after the token b of a beginning,

        score = 1/n · Σ log p(token i | b, tokens before i)

        The end of a text is not scored: whether a caption ends with a full stop would decide. NaN without a token.
        """
        import torch

        tokens = tokenize(self._tokenizer, texts, self._most, special=False)
        values = np.full(len(texts), np.nan)
        for places in passes(tokens.ids, micro_batch):
            lengths = [len(tokens.ids[place]) for place in places]
            ids = torch.full((len(places), 1 + max(lengths)), self._begin)
            follow = torch.full((len(places), 1 + max(lengths)), IGNORED)
            mask = torch.zeros_like(ids)
            for row, (place, length) in enumerate(zip(places, lengths, strict=True)):
                ids[row, 1 : 1 + length] = follow[row, :length] = torch.tensor(tokens.ids[place], dtype=torch.int64)
                mask[row, : 1 + length] = 1
            read = {"input_ids": ids.to(self._device), "attention_mask": mask.to(self._device)}
            logits = self._model(**read, use_cache=False).logits.float()  # (texts, tokens, vocabulary)
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), follow.to(self._device), ignore_index=IGNORED, reduction="none"
            )
            totals = losses.double().sum(dim=1).cpu().numpy()
            for place, total, length in zip(places, totals, lengths, strict=True):
                values[place] = -total / length if length else np.nan
        return Scored(values, tokens.truncated)
