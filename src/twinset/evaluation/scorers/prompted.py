"""Multimodal language models that are asked by a prompt: to choose, or for yes or no."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from twinset.contracts.canonical import digest
from twinset.evaluation.answers.parser import parse, parse_pairing
from twinset.evaluation.examples import OwnQuestion
from twinset.evaluation.scorers.asking import WRITTEN, LocalAsker, ServerAsker, server_settings
from twinset.evaluation.scorers.prompts import Prompt, filled, prompt_of
from twinset.models.encoders.contract import (
    Chooser,
    Floats,
    Matcher,
    ModelKind,
    NotApplicable,
    Question,
    Running,
    Scorer,
)
from twinset.models.language_models.answers import (
    LENGTH,
    NOT_A_NUMBER,
    REFUSED,
    YES_NO,
    Answer,
    ShownImage,
)
from twinset.models.language_models.answers import question as asked_in_one_turn
from twinset.models.visual_questions.settings import find_vision_language

if TYPE_CHECKING:
    from PIL.Image import Image

#: Why a pair has no score: the question or the image is not accepted, the model gives neither answer, or NaN.
UNANSWERED = (REFUSED, "no-answer", NOT_A_NUMBER)


#: Images, the text that follows them, and both words that are allowed; None where it is answered in words of its own.
Asked = tuple[Sequence["Image"], str, tuple[str, str] | None]


class _Prompted:
    def __init__(self, name: str, prompt: Prompt, model: LocalAsker | ServerAsker) -> None:
        self.name, self.words, self.prompt, self.model = name, f"{prompt.name} {prompt.version}", prompt, model
        self.directions = prompt.directions

    def digest(self) -> str:
        return digest([self.model.identity, self.prompt.model_dump(exclude={"name", "version", "source"})])

    def ask(self, asked: Sequence[Asked]) -> list[Answer]:
        """The model's answers; an image of several questions is sent and seen as one."""
        shown = {id(image): ShownImage(image) for images, _, _ in asked for image in images}
        return self.model.ask(
            [asked_in_one_turn(text, [shown[id(image)] for image in images], words) for images, text, words in asked]
        )


class PromptedChooser(_Prompted, Chooser):
    """Shown images and captions, it names one in its own words."""

    def choose(self, questions: Sequence[Question]) -> list[tuple[int, ...] | str]:
        if any(isinstance(caption, OwnQuestion) for question in questions for caption in question.captions):
            what = "chooses captions, and the benchmark asks questions of its own"
            raise NotApplicable(f"{self.name}: {what}; name openai-yesno:MODEL or vlm:FOLDER")
        answers = self.ask([self._asked(question) for question in questions])
        return [self._read(answer, question) for answer, question in zip(answers, questions, strict=True)]

    def _asked(self, question: Question) -> Asked:
        images = question.images
        if len(images) == 2 and self.prompt.images == "joined":
            images = (joined(*images),)
        return images, filled(getattr(self.prompt, question.direction), question.captions), None

    def _read(self, answer: Answer, question: Question) -> tuple[int, ...] | str:
        """Places of what is chosen; in place of these ``cut`` at its greatest length, or another reason."""
        if answer.finish in UNANSWERED:
            return answer.finish
        if question.direction == "pairing":
            reading = parse_pairing(answer.text)
        elif question.direction == "image":
            reading = parse(about_captions(answer.text))
        else:
            reading = parse(answer.text, question.captions)
        if reading.choices:
            return tuple(number - 1 for number in reading.choices)
        return "cut" if answer.finish == LENGTH and reading.reason != "empty" else reading.reason


def about_captions(answer: str) -> str:
    """An answer that chooses an image, in the words of one that chooses a caption, which `parse` reads."""
    noun = r"(?:image|picture|photo|photograph|one)\b"
    for side, place in (("left", "first"), ("right", "second")):
        answer = re.sub(rf"\b{side}(?=(?:[- ]?(?:hand|side))? {noun})", place, answer, flags=re.IGNORECASE)
    return re.sub(r"\b(?:image|picture|photo|photograph)\b", "caption", answer, flags=re.IGNORECASE)


def joined(first: Image, second: Image) -> Image:
    """Two images side by side, the taller one scaled to the height of the other (EqBen, 5.5; its pairs are alike)."""
    from PIL import Image as images

    height = min(first.height, second.height)
    left, right = (side.resize((max(1, round(side.width * height / side.height)), height)) for side in (first, second))
    beside = images.new("RGB", (left.width + right.width, height))
    beside.paste(left, (0, 0))
    beside.paste(right, (left.width, 0))
    return beside


class PromptedYes(_Prompted, Matcher):
    """Asked whether an image shows a text, or what a benchmark itself asks. The score is P(yes) / (P(yes) + P(no)) of
    the first token, or the same of the right answer and the wrong one.
    """

    threshold = 0.5  # yes is likelier than no
    reasons = UNANSWERED

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        asked: list[Asked] = [
            ((image,), text.asked, text.answers)
            if isinstance(text, OwnQuestion)
            else ((image,), filled(self.prompt.text or "", [text.strip()]), YES_NO)
            for image, text in zip(images, texts, strict=True)
        ]
        rows = np.array([self._scored(answer) for answer in self.ask(asked)], np.float32).reshape(-1, 2)
        turned = [isinstance(text, OwnQuestion) and text.right == 1 for text in texts]
        rows[turned, 0] = 1 - rows[turned, 0]
        return rows

    def _scored(self, answer: Answer) -> tuple[float, int]:
        if answer.probability is not None:
            return answer.probability, 0
        return np.nan, UNANSWERED.index(answer.finish if answer.finish in UNANSWERED else "no-answer")


def _open(default: str, local: bool, text: str, parts: Sequence[str], running: Running) -> Scorer:
    """A multimodal language model, asked by a prompt; ``KIND/PROMPT:…`` names another."""
    prompt = prompt_of(text, default)
    scorer = PromptedChooser if prompt.asks == "choice" else PromptedYes
    if local:
        from twinset.models.visual_questions.vision_language import open_vision_language

        return scorer(text, prompt, LocalAsker(open_vision_language(parts[0], running)))
    tokens = WRITTEN if prompt.asks == "choice" else 1
    return scorer(text, prompt, ServerAsker(server_settings(text, parts[0], tokens)))


def _check_local(text: str, parts: Sequence[str]) -> None:
    prompt_of(text, "vqascore")
    find_vision_language(parts[0])


VLM = ModelKind(partial(_open, "vqascore", True), "FOLDER", check=_check_local, prompts=True)
CHOOSER, YES_OR_NO, VQASCORE = (
    ModelKind(opens, "MODEL", check=partial(opens, running=Running()), prompts=True)
    for opens in (partial(_open, default, False) for default in ("choose", "yes-no", "vqascore"))
)
