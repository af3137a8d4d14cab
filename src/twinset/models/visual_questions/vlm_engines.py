"""Multimodal language models in this process as engines: one writes, the other answers yes or no."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import isnan
from typing import TypeVar

from twinset.models.device import inference, within_memory
from twinset.models.encoders.contract import Running
from twinset.models.engines import LocalEngine
from twinset.models.language_models.answers import REFUSED, Answer, Request, Schema, tally_of
from twinset.models.visual_questions.encoder_decoder import open_vision_language
from twinset.models.visual_questions.settings import (
    INSTRUCTION,
    Answers,
    Inquiry,
    Unanswered,
    VisionLanguage,
    Writer,
    YesOrNo,
)
from twinset.models.visual_questions.vision_language import ImageRefused, VisionLanguageModel
from twinset.shards.media.decode import decode
from twinset.shards.metering import count

V = TypeVar("V", bound=VisionLanguage)
A = TypeVar("A")
R = TypeVar("R")


class _Local(LocalEngine[V]):
    def load(self) -> VisionLanguageModel:
        return open_vision_language(self.settings.model, Running(self.settings.device, 1, self.threads))

    def _each(self, answer: Callable[[VisionLanguageModel, A], R], asked: Iterable[A]) -> list[R]:
        model = self.loaded
        with inference(self.threads):
            return [within_memory(partial(answer, model, one)) for one in asked]


class LocalWriter(_Local[Writer]):
    """As `LanguageModel`; the prompt alone asks for the schema."""

    name = "language_model"

    def answers(self, requests: Sequence[Request], schema: Schema) -> list[Answer]:
        """As `LanguageModel.answers`, one request after the other."""
        found = self._each(self._answer, requests)
        for one in found:
            count(tally_of(one))
        return found

    def _answer(self, model: VisionLanguageModel, asked: Request) -> Answer:
        images = [decode(one.content, one.name) for one in asked.images]
        try:
            return model.write(images, "\n\n".join(one.content for one in asked.messages), self.settings.max_tokens)
        except ImageRefused as error:
            return Answer(str(error), REFUSED)


class LocalAnswerer(_Local[YesOrNo]):
    """As `VisualQuestionAnswerer`: the probability of yes as VQAScore has it (Lin et al. 2024), of other questions."""

    name = "answers"

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        """As `VisualQuestionAnswerer.answers`; an image is read once for all its questions."""
        return self._each(_answer, inquiries)


def _answer(model: VisionLanguageModel, asked: Inquiry) -> Answers:
    if not asked.questions:
        return []
    try:
        told = model.yes([decode(asked.image, asked.key)], [f"{one} {INSTRUCTION}" for one in asked.questions])
    except ImageRefused as error:
        return Unanswered("refused", str(error))
    found = list[float]()
    for question, one in zip(asked.questions, told, strict=True):
        if one is None or isnan(one):  # NaN by broken weights
            return Unanswered("no-answer", f"{one} for {question[:200]}")
        found.append(one)
    return found
