"""The mean log-probability of a text's tokens under a causal language model."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from twinset.contracts.errors import WrongUse
from twinset.generators.caption_scores.scorers.scorer import Network, NetworkScorer, Scorer
from twinset.models.language_models.settings import find_language_model
from twinset.models.loading import load_with_tokenizer


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

    def open(self, device: str) -> Scorer:
        """Of a text of n tokens after the token b of a beginning,

        score = 1/n · Σ log p(token i | b, tokens before i)

        The end of a text is not scored: whether a caption ends with a full stop would decide. NaN without a token.
        """
        import torch

        files = find_language_model(self.model)
        tokenizer, model = load_with_tokenizer("AutoModelForCausalLM", files, self.precision)
        begin = tokenizer.bos_token_id
        begin = tokenizer.eos_token_id if begin is None else begin  # GPT-2 has one token for both
        if begin is None:
            raise WrongUse(
                f"{files.folder / files.gguf}: its tokenizer has no token for the beginning of a text; name another "
                "model"
            )
        tokenizer.pad_token_id = begin  # never looked at: many such tokenizers have none of their own
        positions = getattr(model.config, "max_position_embeddings", self.max_tokens)
        model = model.to(device)

        def means(read: Any) -> Any:
            logits = model(**read, use_cache=False).logits.float()  # (texts, tokens, vocabulary)
            follow, scored = read["input_ids"][:, 1:], read["attention_mask"][:, 1:]
            losses = torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), follow, reduction="none")
            return -(losses.double() * scored).sum(dim=1) / scored.sum(dim=1)

        return Network(tokenizer, device, min(self.max_tokens, int(positions) - 1), means, begin)
