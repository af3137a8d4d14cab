"""Classifiers of sentences, as published: CoLA in ``textattack/roberta-base-CoLA``, VERA in ``liujch1998/vera``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from twinset.contracts.errors import WrongUse
from twinset.contracts.references import Reference, bibtex
from twinset.generators.caption_scores.scorers.scorer import LAYOUT, NetworkScorer, Scored, passes, tokenize
from twinset.models.files import find_model
from twinset.models.loading import load_with_tokenizer

ACCEPTABLE = 1  # the class of CoLA


class Cola(NetworkScorer):
    """Probability (0-1) that a sentence is acceptable. model: folder of a classifier of two classes."""

    kind: Literal["cola"]

    score = "cola"
    title = "CoLA"
    probability = True
    reference = Reference("CoLA", "https://arxiv.org/abs/1805.12471", bibtex("warstadt2019cola"))

    def open(self, device: str) -> ColaScorer:
        return ColaScorer(self, device)


class ColaScorer:
    """A classifier of sentences, such as RoBERTa's. The published checkpoint has a pooler that is not used."""

    def __init__(self, settings: Cola, device: str) -> None:
        files = find_model(settings.model, LAYOUT)
        self._tokenizer, model = load_with_tokenizer(
            "AutoModelForSequenceClassification", files, settings.precision, (r"\.pooler\.",)
        )
        if model.config.num_labels != 2:
            raise WrongUse(
                f"{files.folder}: a classifier of {model.config.num_labels} classes; CoLA has two, name another"
            )
        positions = int(model.config.max_position_embeddings)
        # RoBERTa counts positions from its padding token on, so that some are never used.
        if "roberta" in model.config.model_type:
            positions -= int(model.config.pad_token_id) + 1
        self._most = min(positions, int(self._tokenizer.model_max_length))
        self._model, self._device = model.to(device), device

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: softmax over both classes, that of acceptable sentences."""
        tokens = tokenize(self._tokenizer, texts, self._most)
        values = np.empty(len(texts))
        for places in passes(tokens.ids, micro_batch):
            read = self._tokenizer.pad({"input_ids": [tokens.ids[place] for place in places]}, return_tensors="pt")
            logits = self._model(**read.to(self._device)).logits
            values[places] = logits.double().softmax(dim=1)[:, ACCEPTABLE].cpu().numpy()
        return Scored(values, tokens.truncated)


#: The published checkpoint keeps its head in rows of the T5 embedding that no text uses (``<extra_id_0>`` and next).
HEAD, BIAS, TEMPERATURE = 32099, 32098, 32097
UNUSED = (r"^decoder\.", r"^lm_head\.")  # of a whole T5
MOST_TOKENS = 128  # as the published code cuts statements


class Vera(NetworkScorer):
    """VERA's calibrated probability (0-1) that a statement is right. model: folder of the published checkpoint."""

    kind: Literal["vera"]

    score = "vera"
    title = "VERA"
    probability = True
    reference = Reference("VERA", "https://arxiv.org/abs/2305.03695", bibtex("liu2023vera"))

    def open(self, device: str) -> VeraScorer:
        return VeraScorer(self, device)


class VeraScorer:
    """A T5 encoder, its linear head and its temperature."""

    def __init__(self, settings: Vera, device: str) -> None:
        files = find_model(settings.model, LAYOUT)
        self._tokenizer, model = load_with_tokenizer("T5EncoderModel", files, settings.precision, UNUSED)
        embedding = model.get_input_embeddings().weight.detach()
        if len(embedding) <= HEAD:
            raise WrongUse(
                f"{files.folder}: an embedding of {len(embedding)} rows has no row {HEAD}, where VERA's head lies"
            )
        self._head, self._bias = embedding[HEAD].float().to(device), float(embedding[BIAS, 0])
        self._temperature = float(embedding[TEMPERATURE, 0])
        if not 0 < self._temperature < float("inf"):
            raise WrongUse(
                f"{files.folder}: VERA's temperature (row {TEMPERATURE}) is {self._temperature}; not VERA's weights"
            )
        self._model, self._device = model.to(device), device

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: with h the state of the last token, which is the end of the text,

        p = sigmoid((w·h + b) / t)
        """
        import torch

        tokens = tokenize(self._tokenizer, texts, MOST_TOKENS)
        values = np.empty(len(texts))
        for places in passes(tokens.ids, micro_batch):
            read = self._tokenizer.pad({"input_ids": [tokens.ids[place] for place in places]}, return_tensors="pt")
            states = self._model(**read.to(self._device)).last_hidden_state
            last = read["attention_mask"].sum(dim=1) - 1
            ends = states[torch.arange(len(places), device=self._device), last].float()  # (texts, channels)
            logits = ends @ self._head + self._bias
            values[places] = torch.sigmoid(logits.double() / self._temperature).cpu().numpy()
        return Scored(values, tokens.truncated)
