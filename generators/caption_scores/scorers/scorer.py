"""Caption scorers: their settings, the door that they come through, what they give, and the passes that they read in.

A package brings one by an entry point of the group ``twinset.caption_scorers``, named as its kind::

    class Commas(ScorerSettings):
        kind: Literal["commas"]
        score, title, reach = "commas", "number of commas", 5.0

        def open(self, device: str) -> Scorer:
            return count_commas  # (texts, micro_batch) -> Scored

A stage of ``caption-scores`` that names it has the columns ``commas_caption`` and ``commas_negative`` besides those of
`contracts.kinds.text_pair.TEXT_SCORES`. A selection can name ``commas`` in ``quality`` and ``refine``, text pairs in
``scores``. `generators.caption_scores.contract.check_scorer` tests one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny

from twinset.contracts.doors import OfKind, Registry, UnknownKind
from twinset.contracts.errors import suggested
from twinset.contracts.source import Place, PlacedSettings
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

    micro_batch: texts a pass; the last bits of a score depend on it.

    score: name of its score: in a selection, and of its columns, ``SCORE_caption`` and ``SCORE_negative``, or ``SCORE``
        where `of_pairs`. title, unit: of the score, for cards.
    probability: whether the score is one, so that it can be averaged with others.
    reach: the gap between caption and negative that the last bin of a refinement's grid ends with.
    of_pairs: whether it gives unit embeddings, whose cosine is the score of caption and negative.
    extra: the optional dependencies that the model needs.
    """

    micro_batch: int = Field(default=32, ge=1, le=4096)

    score: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str] = ""
    probability: ClassVar[bool] = False
    reach: ClassVar[float] = 1.0
    of_pairs: ClassVar[bool] = False
    extra: ClassVar[str] = "models"

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Names of its columns."""
        return (cls.score,) if cls.of_pairs else (f"{cls.score}_caption", f"{cls.score}_negative")

    def libraries(self) -> tuple[str, ...]:
        """Modules that load the model; raises as `weights`."""
        return ()

    def weights(self) -> str:
        """Digest of the files that decide the scores, empty without any; raises `models.files.ModelMissing`."""
        return ""

    @abstractmethod
    def open(self, device: str) -> Scorer:
        """Load the model. device: torch's name of it. Raises `WrongUse` when the files are not such a model's."""


class NetworkScorer(ScorerSettings):
    """A scorer with a network of transformers.

    model: its folder. precision: of the network; probabilities are computed from its numbers in float32 or more.
    """

    model: Annotated[str, Place("model", "models")] = Field(min_length=1)
    precision: Literal["float32", "bfloat16"] = "float32"

    def libraries(self) -> tuple[str, ...]:
        return ("torch", "transformers")

    def weights(self) -> str:
        return find_model(self.model, LAYOUT).digest()


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


_HOME = "twinset.generators.caption_scores.scorers"
KINDS = {
    "vera": f"{_HOME}.classifiers:Vera",
    "cola": f"{_HOME}.classifiers:Cola",
    "clip": f"{_HOME}.clip:Clip",
    "language-model": f"{_HOME}.language_model:LanguageModel",
}
CAPTION_SCORERS = Registry[ScorerSettings]("caption scorer", ScorerSettings, __name__, "twinset.caption_scorers")
CaptionScorer = Annotated[SerializeAsAny[ScorerSettings], OfKind(CAPTION_SCORERS)]


def bringing(scores: Iterable[str], setting: str) -> dict[str, str]:
    """Packages that brought scorers, by key path, as `PlacedSettings.brought`. setting: that names these scores."""
    found = {f"{setting}.{score}": CAPTION_SCORERS.distribution(scorer_of(score)[0]) for score in scores}
    return {path: package for path, package in found.items() if package}


def scorer_of(score: str) -> tuple[str, type[ScorerSettings]]:
    """Kind and settings of the scorer that gives a score; raises `UnknownKind` naming the scores that there are."""
    known = dict[str, tuple[str, type[ScorerSettings]]]()
    for kind in (*KINDS, *(one for one in CAPTION_SCORERS.kinds() if one not in KINDS)):
        found = CAPTION_SCORERS.find(kind)
        known.setdefault(found.score, (kind, found))
        if score in known:
            return known[score]
    raise UnknownKind(f"no caption scorer here gives a score {score!r}; {suggested(score, known)}")
