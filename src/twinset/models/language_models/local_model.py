"""A language model in this process: a folder of safetensors or a GGUF file, by Hugging Face's transformers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from twinset.contracts.errors import WrongUse
from twinset.models.device import GPU, inference, within_memory
from twinset.models.engines import LocalEngine
from twinset.models.language_models.answers import LENGTH, REFUSED, STOP, Answer, Request, Schema, tally_of
from twinset.models.language_models.chat_templates import LONGEST, REMEDY, bounded, check_template
from twinset.models.language_models.settings import Transformers
from twinset.models.loading import load_with_tokenizer
from twinset.shards.metering import count

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class LocalModel(LocalEngine[Transformers]):
    """As `models.language_models.answers.LanguageModel`.

    An answer's random numbers come from its own seed, one a token, whatever is answered beside it. Scores of tokens
    still round by the shape of the batch, as of any network: equal bytes are promised within a runtime class, for equal
    batches. The generation settings that lie beside a model (penalties, its own temperature) are not used.
    """

    name = "language_model"

    def answers(self, requests: Sequence[Request], schema: Schema) -> list[Answer]:
        """As `LanguageModel.answers`; the prompt alone asks for the schema."""
        found = list[Answer]()
        with inference(self.threads):
            for start in range(0, len(requests), self.micro_batch):
                found += self._batch(requests[start : start + self.micro_batch])
        for one in found:
            count(tally_of(one))
        return found

    def _batch(self, requests: Sequence[Request]) -> list[Answer]:
        tokenizer, model = self.loaded
        prompts = [_prompt(tokenizer, one) for one in requests]
        most = getattr(model.config, "max_position_embeddings", None)
        answers = dict[int, Answer]()
        for row, prompt in enumerate(prompts):
            if most is not None and len(prompt) + self.settings.max_tokens > most:
                why = f"prompt of {len(prompt)} tokens and answer of {self.settings.max_tokens}: the model reads {most}"
                answers[row] = Answer(why, REFUSED)
        asked = [row for row in range(len(requests)) if row not in answers]
        if asked:
            ids, seeds = [prompts[row] for row in asked], [requests[row].seed for row in asked]
            written = within_memory(lambda: self._write(ids, seeds))
            answers |= {
                row: self._answer(prompt, tokens) for row, prompt, tokens in zip(asked, ids, written, strict=True)
            }
        return [answers[row] for row in range(len(requests))]

    def _write(self, prompts: Sequence[Sequence[int]], seeds: Sequence[int]) -> list[list[int]]:
        """New tokens of each row, with padding behind the end of the shorter ones."""
        _, model = self.loaded
        config, width = model.generation_config, max(map(len, prompts))
        # Prompts end at one column: the next tokens of all rows stand beside each other.
        ids = [[config.pad_token_id] * (width - len(one)) + list(one) for one in prompts]
        mask = [[0] * (width - len(one)) + [1] * len(one) for one in prompts]
        processors = LogitsProcessorList()
        if self.settings.temperature > 0:
            processors.append(RowSampler(seeds, self.settings.temperature, self.settings.top_p))
        tokens = model.generate(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            logits_processor=processors,
        )
        rows: list[list[int]] = tokens[:, width:].tolist()
        return rows

    def _answer(self, prompt: Sequence[int], tokens: Sequence[int]) -> Answer:
        tokenizer, model = self.loaded
        ends = set(model.generation_config.eos_token_id)
        length = next((place for place, token in enumerate(tokens) if token in ends), None)
        text = tokenizer.decode(tokens[:length], skip_special_tokens=True)
        written = len(tokens) if length is None else length + 1
        return Answer(text, LENGTH if length is None else STOP, len(prompt), written)

    def load(self) -> tuple[Any, Any]:
        """Tokenizer and network; raises `WrongUse` for a model that is not tuned to chats."""
        found = self.settings.files()
        tokenizer, model = load_with_tokenizer("AutoModelForCausalLM", found, self._dtype())
        if not tokenizer.chat_template:
            raise WrongUse(
                f"{found.folder / found.gguf}: has no chat template; name a model that is tuned to instructions"
            )
        check_template(tokenizer.chat_template, found.folder)
        ends = model.generation_config.eos_token_id
        ends = [*(ends if isinstance(ends, list) else [ends] if ends is not None else []), tokenizer.eos_token_id]
        ends = [one for one in dict.fromkeys(ends) if one is not None]
        if not ends:
            raise WrongUse(f"{found.folder / found.gguf}: names no token that ends an answer (eos_token)")
        model.generation_config = GenerationConfig(
            max_new_tokens=self.settings.max_tokens, do_sample=False, eos_token_id=ends, pad_token_id=ends[0]
        )
        return tokenizer, model.to("cpu" if self.settings.device == "cpu" else GPU).eval()

    def _dtype(self) -> torch.dtype:
        automatic = "float32" if self.settings.device == "cpu" else "bfloat16"
        return _DTYPES[automatic if self.settings.precision == "auto" else self.settings.precision]


def _prompt(tokenizer: Any, request: Request) -> list[int]:
    chat = [{"role": one.role, "content": one.content} for one in request.messages]
    with bounded(Path(tokenizer.name_or_path)):
        text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    if len(text) > LONGEST + sum(len(one.content) for one in request.messages):
        raise WrongUse(
            f"{tokenizer.name_or_path}: its chat template makes {len(text):,} characters of a prompt; {REMEDY}"
        )
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


class RowSampler(LogitsProcessor):  # type: ignore[misc]
    """Samples a token a row; all others get a score of -inf, so that a search for the likeliest finds it.

    A step takes one number of each row's generator, whatever the other rows are: `transformers` samples all rows from
    one generator, so that an answer would depend on what is answered beside it.

    Args:
        seeds: of the rows.
        temperature: that scores are divided by; above 0.
        top_p: share of the probability (0-1) of the tokens that are sampled from, the likeliest first.
    """

    def __init__(self, seeds: Sequence[int], temperature: float, top_p: float) -> None:
        self._generators = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
        self._temperature, self._top_p = temperature, top_p

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores: (rows, vocabulary)."""
        chances = torch.softmax(scores.float() / self._temperature, dim=-1)
        # Stable: equal chances stay in the order of the vocabulary.
        chances, tokens = torch.sort(chances, dim=-1, descending=True, stable=True)
        sums = torch.cumsum(chances.double(), dim=-1)
        # A token is taken while those before it have less than top_p, so that there is always one.
        kept = torch.where(sums - chances < self._top_p, sums, -1.0).amax(dim=-1, keepdim=True)
        numbers = torch.tensor([[one.random()] for one in self._generators], dtype=torch.float64, device=scores.device)
        # The first token at which the sum of chances exceeds the number, of all sums up to the last one kept.
        places = torch.searchsorted(sums, numbers * kept, right=True).clamp(max=sums.shape[-1] - 1)
        chosen = torch.gather(tokens, -1, places)
        return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)
