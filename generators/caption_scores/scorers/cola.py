"""CoLA: how acceptable a sentence is (Warstadt et al. 2019), as published in ``textattack/roberta-base-CoLA``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from twinset.generators.caption_scores.scorers.scorer import LAYOUT, NetworkScorer, Scored, padded, passes, tokenize
from twinset.manifests.errors import WrongUse
from twinset.manifests.source import Reference
from twinset.models.files import find_model
from twinset.models.loading import load_with_tokenizer

ACCEPTABLE = 1  # the class of CoLA
UNUSED = (r"\.pooler\.",)  # tensors of the published checkpoint


class Cola(NetworkScorer):
    """Probability (0-1) that a sentence is acceptable. model: folder of a classifier of two classes."""

    kind: Literal["cola"]

    score = "cola"
    title = "CoLA"
    probability = True
    reference = Reference(
        "CoLA",
        "https://arxiv.org/abs/1805.12471",
        """@article{warstadt2019cola,
  title     = {Neural Network Acceptability Judgments},
  author    = {Warstadt, Alex and Singh, Amanpreet and Bowman, Samuel R.},
  journal   = {Transactions of the Association for Computational Linguistics},
  volume    = {7},
  year      = {2019}
}""",
    )

    def open(self, device: str) -> ColaScorer:
        return ColaScorer(self, device)


class ColaScorer:
    """A classifier of sentences, such as RoBERTa's."""

    def __init__(self, settings: Cola, device: str) -> None:
        files = find_model(settings.model, LAYOUT)
        self._tokenizer, model = load_with_tokenizer(
            "AutoModelForSequenceClassification", files, settings.precision, UNUSED
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
        import torch

        tokens = tokenize(self._tokenizer, texts, self._most)
        values = np.empty(len(texts))
        for places in passes(tokens.ids, micro_batch):
            ids, mask = padded([tokens.ids[place] for place in places], self._tokenizer.pad_token_id)
            read = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            logits = self._model(**{name: one.to(self._device) for name, one in read.items()}).logits
            values[places] = logits.double().softmax(dim=1)[:, ACCEPTABLE].cpu().numpy()
        return Scored(values, tokens.truncated)
