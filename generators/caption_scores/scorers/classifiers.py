"""Classifiers of sentences, as published: CoLA in ``textattack/roberta-base-CoLA``, VERA in ``liujch1998/vera``."""

from __future__ import annotations

from typing import Any, Literal

from twinset.contracts.errors import WrongUse
from twinset.contracts.references import Reference, bibtex
from twinset.generators.caption_scores.scorers.scorer import LAYOUT, Network, NetworkScorer, Scorer
from twinset.models.files import find_model
from twinset.models.loading import load_with_tokenizer

ACCEPTABLE = 1  # the class of CoLA
#: The published VERA keeps its head in rows of the T5 embedding that no text uses (``<extra_id_0>`` and next).
HEAD, BIAS, TEMPERATURE = 32099, 32098, 32097
UNUSED = (r"^decoder\.", r"^lm_head\.")  # of a whole T5


class Cola(NetworkScorer):
    """Probability (0-1) that a sentence is acceptable. model: folder of a classifier of two classes."""

    kind: Literal["cola"]

    score = "cola"
    title = "CoLA"
    reference = Reference("CoLA", "https://arxiv.org/abs/1805.12471", bibtex("warstadt2019cola"))

    def open(self, device: str) -> Scorer:
        """A classifier such as RoBERTa's: softmax over both classes. The pooler of the published one is not used."""
        files = find_model(self.model, LAYOUT)
        network = "AutoModelForSequenceClassification"
        tokenizer, model = load_with_tokenizer(network, files, self.precision, (r"\.pooler\.",))
        if model.config.num_labels != 2:
            raise WrongUse(f"{files.folder}: has {model.config.num_labels} classes; CoLA has two, name another model")
        model = model.to(device)

        def chances(read: Any) -> Any:
            return model(**read).logits.double().softmax(dim=1)[:, ACCEPTABLE]

        return Network(tokenizer, device, chances)


class Vera(NetworkScorer):
    """VERA's calibrated probability (0-1) that a statement is right. model: folder of the published checkpoint."""

    kind: Literal["vera"]

    score = "vera"
    title = "VERA"
    reference = Reference("VERA", "https://arxiv.org/abs/2305.03695", bibtex("liu2023vera"))

    def open(self, device: str) -> Scorer:
        """A T5 encoder, its linear head (w, b) and its temperature t: with h the state of the end of the text,

        p = sigmoid((w·h + b) / t)
        """
        import torch

        files = find_model(self.model, LAYOUT)
        tokenizer, model = load_with_tokenizer("T5EncoderModel", files, self.precision, UNUSED)
        embedding = model.get_input_embeddings().weight.detach()
        temperature = float(embedding[TEMPERATURE, 0]) if len(embedding) > HEAD else 0
        if not 0 < temperature < float("inf"):
            raise WrongUse(f"{files.folder}: not VERA's weights: row {TEMPERATURE} of the embedding has no temperature")
        head, bias = embedding[HEAD].float().to(device), float(embedding[BIAS, 0])
        model = model.to(device)

        def chances(read: Any) -> Any:
            states = model(**read).last_hidden_state
            last = read["attention_mask"].sum(dim=1) - 1
            ends = states[torch.arange(len(states), device=device), last].float()  # (texts, channels)
            return torch.sigmoid((ends @ head + bias).double() / temperature)

        return Network(tokenizer, device, chances)
