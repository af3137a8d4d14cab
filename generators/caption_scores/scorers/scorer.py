"""Caption scorers: their settings, the door that they come through, and how networks read texts.

A package brings one by an entry point of the group ``twinset.caption_scorers``, named as its kind::

    class Commas(ScorerSettings):
        kind: Literal["commas"]
        score, title = "commas", "share of commas"

        def open(self, device: str) -> Scorer:
            return share_of_commas  # (texts, micro_batch) -> numbers from 0 to 1

A stage of ``caption-scores`` that names it has the columns ``commas_caption`` and ``commas_negative`` besides those of
`contracts.kinds.text_pair.TEXT_SCORES`. A selection can name ``commas`` in ``quality`` and ``refine``, text pairs in
``scores``. `generators.caption_scores.contract.check_scorer` tests one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializeAsAny

from twinset.contracts.doors import Registry, UnknownKind
from twinset.contracts.errors import suggested
from twinset.contracts.source import Place, PlacedSettings
from twinset.models.files import TOKENIZERS, WEIGHTS, Layout, find_model

MOST_TOKENS = 128  # of a text that a network reads, as VERA's published code cuts statements; captions have fewer
LAYOUT = Layout(
    "Such a model is a folder with config.json, model.safetensors or pytorch_model.bin, and its tokenizer",
    (("config.json",), WEIGHTS, ("tokenizer.json", "spiece.model", "vocab.json")),
    ("config.json", "spiece.model", *TOKENIZERS, WEIGHTS),
)

#: A loaded model: called with texts and how many of them a pass takes, it gives their scores in order, (texts,)
#: float64 from 0 to 1, NaN where a text holds nothing to score; or, where ``of_pairs``, (texts, channels) float32.
Scorer = Callable[[Sequence[str], int], NDArray[Any]]


class ScorerSettings(PlacedSettings):
    """Settings of one scorer.

    score: name of its score: in a selection, and of its columns, ``SCORE_caption`` and ``SCORE_negative``, or ``SCORE``
        where `of_pairs`. title: of the score, for cards.
    of_pairs: whether it gives unit embeddings, whose cosine is the score of caption and negative.
    """

    score: ClassVar[str]
    title: ClassVar[str]
    of_pairs: ClassVar[bool] = False

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
class Network:
    """A loaded network, as a `Scorer`.

    tokenizer: of transformers. device: of the network.
    score: gives the number of each text of a pass, a tensor (texts,), of what the tokenizer pads.
    """

    tokenizer: Any
    device: str
    score: Callable[[Any], Any]

    def __call__(self, texts: Sequence[str], micro_batch: int) -> NDArray[np.float64]:
        """As `Scorer`: passes of texts of like length, in an order that they alone decide."""
        options = {"truncation": True, "max_length": MOST_TOKENS, "return_token_type_ids": False}
        values = np.empty(len(texts))
        order = sorted(range(len(texts)), key=lambda place: (len(texts[place]), texts[place]))
        for start in range(0, len(order), micro_batch):
            places = order[start : start + micro_batch]
            batch = [texts[place] for place in places]
            read = self.tokenizer(batch, padding=True, padding_side="right", return_tensors="pt", **options)
            values[places] = self.score(read.to(self.device)).cpu().numpy()
        return values


_HOME = "twinset.generators.caption_scores.scorers"
KINDS = {"vera": f"{_HOME}.classifiers:Vera", "cola": f"{_HOME}.classifiers:Cola", "clip": f"{_HOME}.clip:Clip"}
CAPTION_SCORERS = Registry[type[ScorerSettings]]("caption scorer", ScorerSettings, __name__, "twinset.caption_scorers")
CaptionScorer = Annotated[SerializeAsAny[ScorerSettings], CAPTION_SCORERS]


def scorer_of(score: str) -> tuple[str, type[ScorerSettings]]:
    """Kind and settings of the scorer that gives a score; raises `UnknownKind` naming the scores that there are."""
    known = dict[str, tuple[str, type[ScorerSettings]]]()
    for kind in (*KINDS, *(brought for brought in CAPTION_SCORERS.kinds() if brought not in KINDS)):
        scorer = CAPTION_SCORERS.find(kind)
        known.setdefault(scorer.score, (kind, scorer))
        if score in known:
            return known[score]
    raise UnknownKind(f"no caption scorer here gives a score {score!r}; {suggested(score, known)}")
