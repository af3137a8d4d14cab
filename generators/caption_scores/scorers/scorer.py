"""Caption scorers: their settings, the door that they come through, what they give, and how networks read.

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
from collections.abc import Callable, Iterable, Sequence
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
class Network:
    """A loaded network that scores passes of tokens, as a `Scorer`.

    tokenizer: of transformers. device: of the network. most: tokens that it reads.
    score: gives the number of each text of a pass, a tensor (texts,), of what the tokenizer pads.
    begin: a token put before each text; the tokenizer's own marks otherwise, which stay when a text is cut.
    """

    tokenizer: Any
    device: str
    most: int
    score: Callable[[Any], Any]
    begin: int | None = None

    def __call__(self, texts: Sequence[str], micro_batch: int) -> Scored:
        """As `Scorer.__call__`: passes of texts of like length, in an order that they alone decide."""
        cut = [text[: self.most * CHARACTERS_A_TOKEN] for text in texts]
        truncated = np.array([len(short) < len(text) for short, text in zip(cut, texts, strict=True)], dtype=np.bool_)
        ids = self._ids(cut, truncation=True, max_length=self.most)
        for number, tokens in enumerate(ids):
            # One that fills the model may have been cut.
            if len(tokens) >= self.most and not truncated[number]:
                truncated[number] = len(self._ids([cut[number]], truncation=False)[0]) > self.most
        ids = [[*([] if self.begin is None else [self.begin]), *tokens] for tokens in ids]
        values = np.empty(len(texts))
        order = sorted(range(len(ids)), key=lambda place: (len(ids[place]), ids[place]))
        for start in range(0, len(order), micro_batch):
            places = order[start : start + micro_batch]
            read = self.tokenizer.pad(
                {"input_ids": [ids[place] for place in places]}, padding_side="right", return_tensors="pt"
            )
            values[places] = self.score(read.to(self.device)).cpu().numpy()
        return Scored(values, truncated)

    def _ids(self, texts: Sequence[str], **options: Any) -> list[list[int]]:
        read = self.tokenizer(texts, add_special_tokens=self.begin is None, padding=False, verbose=False, **options)
        ids: list[list[int]] = read["input_ids"]
        return ids


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
