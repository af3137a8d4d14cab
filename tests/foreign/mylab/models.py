"""Engines and a caption scorer. None has a network."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from twinset import Rejected
from twinset.generators.caption_scores.scorers.scorer import Scorer, ScorerSettings
from twinset.models.image_engine import Drawn, ImageEngineSettings, ImageGenerator, Request
from twinset.models.language_models.answers import Answer
from twinset.models.language_models.answers import Request as Chat
from twinset.models.language_models.settings import LanguageModelSettings


class WithoutNetwork:
    """What both language models are besides their answers."""

    micro_batch = 8
    threads = 1

    def __init__(self, settings: LanguageModelSettings) -> None:
        self.settings = settings

    def device(self) -> str | None:
        """It has no network."""
        return None

    def weights(self) -> Mapping[str, str]:
        """None."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        return self


class Words(LanguageModelSettings):
    """Writes "cat" for "dog"."""

    kind: Literal["mylab-words"]

    local = False
    worker = "mylab.models:WordsModel"


class WordsModel(WithoutNetwork):
    """Answers the last turn of a chat."""

    def ask(self, requests: Sequence[Chat]) -> list[Answer]:
        turns = [request.messages[-1].content for request in requests]
        captions = [json.loads(turn.splitlines()[-1])["caption"] for turn in turns]
        return [Answer(json.dumps({"negative_caption": caption.replace("dog", "cat")})) for caption in captions]


class BrightAnswers(LanguageModelSettings):
    """Says yes to a question of an image that is brighter than two grey levels a letter."""

    kind: Literal["mylab-bright"]

    sees = True
    worker = "mylab.models:BrightAnswerer"


class BrightAnswerer(WithoutNetwork):
    """As `BrightAnswers`."""

    def ask(self, requests: Sequence[Chat]) -> list[Answer]:
        levels = [int(np.asarray(request.images[0].pixels).mean()) for request in requests]
        limits = [2 * len(request.text) for request in requests]
        return [Answer(probability=float(level >= limit)) for level, limit in zip(levels, limits, strict=True)]


class Length(ScorerSettings):
    """The letters of a caption, in hundreds."""

    kind: Literal["mylab-length"]

    score, title = "letters", "hundreds of letters"

    def open(self, device: str) -> Scorer:
        return _letters


def _letters(texts: Sequence[str], micro_batch: int) -> NDArray[np.float64]:
    return np.minimum([len(text) / 100 for text in texts], 1)


class FlatImages(ImageEngineSettings):
    """Images of one colour, which depends on the caption."""

    kind: Literal["mylab-flat"]
    licence: str = "CC0-1.0"

    title = "flat colours"
    reasons: ClassVar[Mapping[str, str]] = {"too-long": "the caption has more than a hundred letters"}

    def open(self) -> "FlatPainter":
        return FlatPainter()


class FlatPainter(ImageGenerator):
    """As `FlatImages`."""

    version = 1

    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        for request in requests:
            if len(request.caption) > 100:
                yield Rejected(request.key, "too-long")
                continue
            colour = np.random.default_rng([request.seed, *request.caption.encode()]).integers(0, 200, 3)
            yield Drawn(request.key, np.full((64, 64, 3), colour, np.uint8), {"colour": colour.tolist()})
