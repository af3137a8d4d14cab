"""Multimodal language models that are asked by a prompt: to choose, for yes or no, or how likely a caption is.

What differs between a server and a network here is only how a prompt with images gets an answer back: `Speaker`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from twinset.contracts.canonical import digest
from twinset.evaluation.answers.parser import parse, parse_pairing
from twinset.evaluation.examples import OwnQuestion
from twinset.evaluation.scorers.prompts import ChoicePrompt, LikelihoodPrompt, Prompt, YesPrompt, filled
from twinset.models.encoders.contract import Chooser, Direction, Floats, Matcher, NotApplicable, Question, Scorer
from twinset.models.language_models.answers import LENGTH, REFUSED, YES_NO, Answer
from twinset.models.visual_questions.vision_language import NOT_A_NUMBER

if TYPE_CHECKING:
    from PIL.Image import Image

#: Why there is no answer, besides the parser's reasons.
UNANSWERED = {
    REFUSED: "the server, or the model's image processor, does not accept the question or the image",
    "no-answer": "the model says neither yes nor no",
    "cut": "the answer reached its greatest length without a choice, as one that loops does",
    NOT_A_NUMBER: "the network gives NaN",
    "tie": "both options are equally likely",
}
OPTIONS = ("1", "2")


class Shown(NamedTuple):
    """Images, then a text. answers: of which `Speaker.yes` gives the probability of the first."""

    images: tuple[Image, ...]
    text: str
    answers: tuple[str, str] = YES_NO


class Speaker(Protocol):
    """A model that reads prompts with images. identity: what decides its answers, besides the prompts."""

    identity: list[Any]

    def write(self, asked: Sequence[Shown]) -> list[Answer]:
        """What it answers to each, in its own words."""

    def options(self, asked: Sequence[Shown], options: Sequence[str]) -> list[list[float] | str]:
        """Log-likelihoods of each option as the answer to each, or a reason of `UNANSWERED`.

        Raises:
            WrongUse: it is on a server, which gives none.
        """

    def yes(self, asked: Sequence[Shown]) -> list[float | str]:
        """P(yes) / (P(yes) + P(no)) of each, or of its own two answers; or a reason of `UNANSWERED`."""

    def likelihoods(self, asked: Sequence[tuple[Shown, str]]) -> list[Floats | str]:
        """Log-probabilities of the tokens of each text as the answer to a prompt, NaN where the network gives it, or a
        reason of `UNANSWERED`; raises as `options`.
        """


class PromptedChooser(Chooser):
    """Shown images and captions, it names one, in its own words or by the likelier of `OPTIONS`."""

    def __init__(self, name: str, prompt: ChoicePrompt, speaker: Speaker) -> None:
        self.name, self.words, self.prompt, self.speaker = name, prompt.told, prompt, speaker
        self.directions: tuple[Direction, ...] = prompt.directions

    def digest(self) -> str:
        return digest(["chooser", self.speaker.identity, self.prompt.digest()])

    def choose(self, questions: Sequence[Question]) -> list[tuple[int, ...] | str]:
        _refuse_questions(self.name, [text for one in questions for text in one.captions])
        asked = [self._shown(one) for one in questions]
        if self.prompt.answer == "options":
            return [one if isinstance(one, str) else _likelier(*one) for one in self.speaker.options(asked, OPTIONS)]
        answers = self.speaker.write(asked)
        return [self._read(answer, one) for answer, one in zip(answers, questions, strict=True)]

    def _shown(self, question: Question) -> Shown:
        form = getattr(self.prompt, question.direction)
        images = question.images
        if len(images) == 2 and self.prompt.images == "joined":
            images = (joined(*images),)
        return Shown(images, filled(form, question.captions))

    def _read(self, answer: Answer, question: Question) -> tuple[int, ...] | str:
        if answer.finish in (REFUSED, NOT_A_NUMBER):
            return answer.finish
        if question.direction == "pairing":
            found = parse_pairing(answer.text)
        elif question.direction == "image":
            found = parse(about_captions(answer.text))
        else:
            found = parse(answer.text, (question.captions[0], question.captions[1]))
        if found.choices:
            return tuple(one - 1 for one in found.choices)
        return "cut" if answer.finish == LENGTH and found.reason != "empty" else found.reason


def _refuse_questions(name: str, texts: Sequence[str]) -> None:
    """Raise `NotApplicable` where a text is a benchmark's question, which is no caption."""
    if question := next((text.asked for text in texts if isinstance(text, OwnQuestion)), None):
        raise NotApplicable(
            f"{name}: reads captions, and the benchmark asks {question[:100]!r}; name a model that answers, such as "
            "openai-yesno:MODEL or vlm:FOLDER"
        )


def _likelier(first: float, second: float) -> tuple[int, ...] | str:
    if np.isnan([first, second]).any():
        return NOT_A_NUMBER
    return "tie" if first == second else (int(second > first),)


_SIDES = {"left": "first", "right": "second"}


def about_captions(answer: str) -> str:
    """An answer that chooses an image, in the words of one that chooses a caption, which `parse` reads."""
    noun = r"(?:image|picture|photo|photograph|one)\b"
    answer = re.sub(
        rf"\b(left|right)(?=(?:[- ]?(?:hand|side))? {noun})", lambda m: _SIDES[m[1].lower()], answer, flags=re.I
    )
    return re.sub(r"\b(?:image|picture|photo|photograph)\b", "caption", answer, flags=re.I)


def joined(first: Image, second: Image) -> Image:
    """Two images side by side, the taller one scaled to the height of the other (EqBen, 5.5; its pairs are alike)."""
    from PIL import Image as images

    height = min(first.height, second.height)
    scaled = [
        one if one.height == height else one.resize((max(1, round(one.width * height / one.height)), height))
        for one in (first, second)
    ]
    found = images.new("RGB", (sum(one.width for one in scaled), height))
    found.paste(scaled[0], (0, 0))
    found.paste(scaled[1], (scaled[0].width, 0))
    return found


class PromptedYes(Matcher):
    """Asked whether an image shows a text, or what a benchmark itself asks. The score is P(yes) / (P(yes) + P(no)) of
    the first token, or the same of the right answer and the wrong one.
    """

    threshold = 0.5  # yes is likelier than no
    reasons = tuple(UNANSWERED)

    def __init__(self, name: str, prompt: YesPrompt, speaker: Speaker) -> None:
        self.name, self.words, self.prompt, self.speaker = name, prompt.told, prompt, speaker

    def digest(self) -> str:
        return digest(["yes", self.speaker.identity, self.prompt.digest()])

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        asked = [
            Shown((image,), text.asked, text.answers)
            if isinstance(text, OwnQuestion)
            else Shown((image,), filled(self.prompt.text, [text.strip()]))
            for image, text in zip(images, texts, strict=True)
        ]
        told = self.speaker.yes(asked)
        other = [isinstance(text, OwnQuestion) and text.right == 1 for text in texts]
        right = [1 - one if turn and not isinstance(one, str) else one for one, turn in zip(told, other, strict=True)]
        return answered(right, self.reasons)


class PromptedLikelihood(Matcher):
    """How likely a text is as the answer about an image (VisualGPTScore).

    has_prior: whether `score` gives one more column, the log-likelihood with a null image.
    """

    reasons = (NOT_A_NUMBER, REFUSED)

    def __init__(self, name: str, prompt: LikelihoodPrompt, speaker: Speaker) -> None:
        self.name, self.words, self.prompt, self.speaker = name, prompt.told, prompt, speaker
        self.has_prior = prompt.score == "debiased"
        self._prior = lru_cache(4096)(self._prior_of)

    def digest(self) -> str:
        return digest(["likelihood", self.speaker.identity, self.prompt.digest()])

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        _refuse_questions(self.name, texts)
        asked = [(Shown((image,), self.prompt.text), text.strip()) for image, text in zip(images, texts, strict=True)]
        told = self.speaker.likelihoods(asked)
        found = answered([self._score(one) for one in told], self.reasons)
        if not self.has_prior:
            return found
        prior = np.array([self._prior(text.strip()) for text in texts], np.float32)
        found[np.isnan(prior) & ~np.isnan(found[:, 0])] = np.nan, self.reasons.index(NOT_A_NUMBER)
        return np.column_stack([found, prior])

    def _score(self, tokens: Floats | str) -> float | str:
        if isinstance(tokens, str):
            return tokens
        score = float(tokens.mean() if self.prompt.score == "mean" else tokens.sum())
        return NOT_A_NUMBER if np.isnan(score) else score

    def _prior_of(self, text: str) -> float:
        from PIL import Image as images

        null = images.new("RGB", (NULL, NULL), (127, 127, 127))
        (told,) = self.speaker.likelihoods([(Shown((null,), self.prompt.text), text)])
        return float(np.nan) if isinstance(told, str) else float(told.sum())


NULL = 224  # pixels of the side of the null image, plain grey


def answered(told: Sequence[float | str], reasons: Sequence[str]) -> Floats:
    """As `Matcher.score` gives it where there are ``reasons``: scores, with NaN and a reason's place where there is
    none, shape (n, 2).
    """
    rows = [(np.nan, reasons.index(one)) if isinstance(one, str) else (one, 0) for one in told]
    return np.array(rows, np.float32).reshape(-1, 2)


def prompted(name: str, prompt: Prompt, speaker: Speaker) -> Scorer:
    """The scorer that a prompt asks for."""
    if isinstance(prompt, ChoicePrompt):
        return PromptedChooser(name, prompt, speaker)
    if isinstance(prompt, YesPrompt):
        return PromptedYes(name, prompt, speaker)
    return PromptedLikelihood(name, prompt, speaker)
