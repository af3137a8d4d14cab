"""What a scorer is: its settings, what it gives for texts, and the passes that it reads them in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinset.manifests.source import Place, PlacedSettings
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, find_model

#: Characters that are looked at for each token that a model reads; a caption of 10 MB is cut before it is tokenized.
CHARACTERS_A_TOKEN = 100
LAYOUT = Layout(
    "Such a model is a folder with config.json, model.safetensors or pytorch_model.bin, and its tokenizer",
    (("config.json",), WEIGHTS, ("tokenizer.json", "spiece.model", "vocab.json")),
    ("config.json", "spiece.model", *TOKENIZERS, WEIGHTS),
)


class ScorerSettings(PlacedSettings):
    """Settings of one scorer.

    model: its folder. micro_batch: texts a pass; the last bits of a score depend on it. precision: of the network;
    probabilities are computed from its numbers in float32 or more.

    extra: the optional dependencies that the model needs.
    column: its scores' column is called ``COLUMN_caption`` and ``COLUMN_negative``, or ``COLUMN`` where `of_pairs`.
    of_pairs: whether it gives unit embeddings, whose cosine is the score of caption and negative.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    micro_batch: int = Field(default=32, ge=1, le=4096)
    precision: Literal["float32", "bfloat16"] = "float32"

    column: ClassVar[str]
    of_pairs: ClassVar[bool] = False
    extra: ClassVar[str] = "models"

    def libraries(self) -> tuple[str, ...]:
        """What loads the model; raises as `weights`."""
        return ("torch", "transformers")

    def weights(self) -> str:
        """Digest of the files that decide the scores; raises `models.files.ModelMissing`."""
        return find_model(self.model, LAYOUT).digest()

    @abstractmethod
    def open(self, device: str) -> Scorer:
        """Load the model. device: torch's name of it. Raises `WrongUse` when the files are not such a model's."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What a scorer gives for texts, in their order.

    values: (texts,) float64, or (texts, channels) float32 unit embeddings. NaN where a text holds nothing to score.
    truncated: (texts,), whether only the beginning of a text was read, since it is longer than the model reads.
    """

    values: NDArray[Any]
    truncated: NDArray[np.bool_]


class Scorer(Protocol):
    """A loaded model."""

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """Scores of texts, ``micro_batch`` of them a pass."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Texts as a model reads them. ids: of each text, at most as many as it reads. truncated: as in `Scored`."""

    ids: list[list[int]]
    truncated: NDArray[np.bool_]


def tokenize(tokenizer: Any, texts: Sequence[str], most: int, special: bool = True) -> Tokens:
    """Tokens of texts, cut to what a model reads.

    Args:
        tokenizer: of transformers.
        most: tokens that the model reads.
        special: whether marks of beginning and end are added; they stay when a text is cut.
    """
    looked_at = most * CHARACTERS_A_TOKEN
    truncated = np.array([len(text) > looked_at for text in texts], dtype=np.bool_)
    options = {"add_special_tokens": special, "padding": False, "verbose": False}
    cut = [text[:looked_at] for text in texts]
    ids: list[list[int]] = tokenizer(cut, truncation=True, max_length=most, **options)["input_ids"]
    for number, found in enumerate(ids):
        # One that fills the model may have been cut.
        if len(found) >= most and not truncated[number]:
            truncated[number] = len(tokenizer(cut[number], truncation=False, **options)["input_ids"]) > most
    return Tokens(ids, truncated)


def passes(ids: Sequence[Sequence[int]], micro_batch: int) -> Iterator[list[int]]:
    """Places of texts, those of one pass at a time: texts of like length, in an order that they alone decide."""
    order = sorted(range(len(ids)), key=lambda place: (len(ids[place]), ids[place]))
    for start in range(0, len(order), micro_batch):
        yield order[start : start + micro_batch]


def padded(ids: Sequence[Sequence[int]], padding: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens of a pass, filled up on the right, and the mask that tells them from padding: (texts, longest) each."""
    longest = max(map(len, ids))
    tokens = np.full((len(ids), longest), padding, dtype=np.int64)
    mask = np.zeros((len(ids), longest), dtype=np.int64)
    for row, text in enumerate(ids):
        tokens[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return tokens, mask
