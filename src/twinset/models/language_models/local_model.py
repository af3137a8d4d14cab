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
from twinset.models.language_models.answers import LENGTH, NOT_A_NUMBER, REFUSED, STOP, Answer, Request
from twinset.models.language_models.chat_templates import bounded, check_template
from twinset.models.language_models.settings import Transformers
from twinset.models.loading import load_with_tokenizer
from twinset.shards.metering import count


class LocalModel(LocalEngine[Transformers]):
    """As `models.language_models.answers.LanguageModel`.

    An answer's random numbers come from its own seed, one a token, whatever is answered beside it. Scores of tokens
    still round by the shape of the batch, as of any network: equal bytes are promised within a runtime class, for equal
    batches. The generation settings that lie beside a model (penalties, its own temperature) are not used.
    """

    name = "language_model"

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """As `LanguageModel.ask`; the prompt alone asks for the schema."""
        answers = list[Answer]()
        with inference(self.threads):
            for start in range(0, len(requests), self.micro_batch):
                answers += self._batch(requests[start : start + self.micro_batch])
        for answer in answers:
            count(answer.tally)
        return answers

    def _batch(self, requests: Sequence[Request]) -> list[Answer]:
        tokenizer, model = self.loaded
        prompts = [_prompt(tokenizer, request) for request in requests]
        longest, written = getattr(model.config, "max_position_embeddings", None), self.settings.max_tokens
        fits = [longest is None or len(prompt) + written <= longest for prompt in prompts]
        ids = [prompt for prompt, fit in zip(prompts, fits, strict=True) if fit]
        seeds = [request.seed for request, fit in zip(requests, fits, strict=True) if fit]
        rows = iter(within_memory(lambda: self._write(ids, seeds)) if ids else ())
        ends = model.generation_config.eos_token_id
        return [
            answer_of(tokenizer, *next(rows), ends, len(prompt))
            if fit
            else Answer(f"prompt of {len(prompt)} tokens and answer of {written}: the model reads {longest}", REFUSED)
            for prompt, fit in zip(prompts, fits, strict=True)
        ]

    def _write(self, prompts: Sequence[Sequence[int]], seeds: Sequence[int]) -> list[tuple[list[int], bool]]:
        """New tokens of each row, with padding behind the end of the shorter ones; whether a score was not a number."""
        _, model = self.loaded
        config, width = model.generation_config, max(map(len, prompts))
        # Prompts end at one column: the next tokens of all rows stand beside each other.
        ids = [[config.pad_token_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        broken = NotANumber()
        processors = LogitsProcessorList([broken])
        if self.settings.temperature > 0:
            processors.append(RowSampler(seeds, self.settings.temperature, self.settings.top_p))
        tokens = model.generate(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            logits_processor=processors,
        )
        return [*zip(tokens[:, width:].tolist(), broken.rows.tolist(), strict=True)]

    def load(self) -> tuple[Any, Any]:
        """Tokenizer and network; raises `WrongUse` for a model that is not tuned to chats."""
        files, precision = self.settings.files(), self.settings.precision
        if precision == "auto":
            precision = "float32" if self.settings.device == "cpu" else "bfloat16"
        tokenizer, model = load_with_tokenizer("AutoModelForCausalLM", files, precision)
        if not tokenizer.chat_template:
            raise WrongUse(
                f"{files.folder / files.gguf}: has no chat template; name a model that is tuned to instructions"
            )
        tokenizer.chat_template = check_template(tokenizer.chat_template, files.folder)
        ends = end_tokens(tokenizer, model, files.folder / files.gguf)
        model.generation_config = GenerationConfig(
            max_new_tokens=self.settings.max_tokens, do_sample=False, eos_token_id=ends, pad_token_id=ends[0]
        )
        return tokenizer, model.to("cpu" if self.settings.device == "cpu" else GPU).eval()


def _prompt(tokenizer: Any, request: Request) -> list[int]:
    chat = [turn._asdict() for turn in request.messages]
    text = bounded(
        lambda: tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False),
        Path(tokenizer.name_or_path),
        sum(len(turn.content) for turn in request.messages),
    )
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def end_tokens(tokenizer: Any, model: Any, place: Path) -> list[int]:
    """Tokens that end an answer, by the model's settings and its tokenizer; raises `WrongUse` where there are none."""
    named = [model.generation_config.eos_token_id, tokenizer.eos_token_id]
    ends = [end for ids in named for end in (ids if isinstance(ids, list) else [ids]) if end is not None]
    if not ends or not all(isinstance(end, int) for end in ends):
        raise WrongUse(f"{place}: names no token that ends an answer (eos_token), or not by its number")
    return list(dict.fromkeys(ends))


def answer_of(tokenizer: Any, tokens: Sequence[int], broken: bool, ends: Sequence[int], read: int) -> Answer:
    """The answer in written tokens, up to the first of ``ends``; none where ``broken``. read: tokens of the prompt."""
    if broken:
        return Answer("", NOT_A_NUMBER, read, len(tokens))
    length = next((place for place, token in enumerate(tokens) if token in ends), None)
    text = tokenizer.decode(tokens[:length], skip_special_tokens=True)
    written = len(tokens) if length is None else length + 1
    return Answer(text, LENGTH if length is None else STOP, read, written)


class NotANumber(LogitsProcessor):  # type: ignore[misc]
    """Keeps in ``rows`` which rows have had a score that is none."""

    def __init__(self) -> None:
        self.rows = torch.tensor(False)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores: (rows, vocabulary)."""
        self.rows = self.rows | scores.isnan().any(-1)
        return scores


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
        numbers = torch.tensor([[row.random()] for row in self._generators], dtype=torch.float64, device=scores.device)
        # The first token at which the sum of chances exceeds the number, of all sums up to the last one kept.
        places = torch.searchsorted(sums, numbers * kept, right=True).clamp(max=sums.shape[-1] - 1)
        chosen = torch.gather(tokens, -1, places)
        return torch.full_like(scores, -torch.inf).scatter(-1, chosen, 0.0)
