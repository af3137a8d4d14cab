"""CoLA: how acceptable a sentence is (Warstadt et al. 2019), as published in ``textattack/roberta-base-CoLA``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from twinset.generators.caption_scores.scorers.checkpoint import checkpoint_files
from twinset.generators.caption_scores.scorers.scorer import Scored, ScorerSettings, padded, passes, tokenize
from twinset.manifests.errors import WrongUse
from twinset.models.files import files_digest
from twinset.models.loading import load_beside, load_network

ACCEPTABLE = 1  # the class of CoLA


class Cola(ScorerSettings):
    """Probability (0-1) that a sentence is acceptable. model: folder of a classifier of two classes."""

    kind: Literal["cola"]

    column: ClassVar[str] = "cola"

    def weights(self) -> str:
        """As `ScorerSettings.weights`."""
        return files_digest(checkpoint_files(self.model))

    def open(self, device: str) -> ColaScorer:
        """As `ScorerSettings.open`."""
        return ColaScorer(self, device)


class ColaScorer:
    """A classifier of sentences, such as RoBERTa's."""

    def __init__(self, settings: Cola, device: str) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        folder = checkpoint_files(settings.model)[0].parent
        self._tokenizer = load_beside(AutoTokenizer, folder)
        model = load_network(AutoModelForSequenceClassification, folder, settings.precision)
        if model.config.num_labels != 2:
            raise WrongUse(f"{folder}: a classifier of {model.config.num_labels} classes; CoLA has two, name another")
        positions = int(model.config.max_position_embeddings)
        # RoBERTa counts positions from its padding token on, so that some are never used.
        if "roberta" in model.config.model_type:
            positions -= int(model.config.pad_token_id) + 1
        self._most = min(positions, int(self._tokenizer.model_max_length))
        self._model, self._device = model.to(device), device

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: softmax over both classes, that of acceptable sentences."""
        import torch

        tokens = tokenize(self._tokenizer, texts, self._most)
        values = np.empty(len(texts))
        for places in passes(tokens.ids, micro_batch):
            ids, mask = padded([tokens.ids[place] for place in places], self._tokenizer.pad_token_id)
            read = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            logits = self._model(**{name: one.to(self._device) for name, one in read.items()}).logits
            values[places] = logits.double().softmax(dim=1)[:, ACCEPTABLE].cpu().numpy()
        return Scored(values, tokens.truncated)
