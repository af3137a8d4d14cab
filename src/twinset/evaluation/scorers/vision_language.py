"""``vlm:FOLDER``: multimodal language models in this process, asked by a prompt; what they write is kept on disk."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from twinset.contracts.canonical import digest
from twinset.contracts.locations import cache_folder
from twinset.evaluation.scorers.prompted import Shown, prompted
from twinset.evaluation.scorers.prompts import prompt_of
from twinset.models.encoders.contract import Floats, ModelKind, Running, Scorer
from twinset.models.language_models.answers import REFUSED, Answer, Answers
from twinset.models.visual_questions.encoder_decoder import open_vision_language
from twinset.models.visual_questions.vision_language import (
    NOT_A_NUMBER,
    WRITTEN,
    ImageRefused,
    VisionLanguageModel,
    find_vision_language,
)

if TYPE_CHECKING:
    from PIL.Image import Image

_LOG = logging.getLogger("twinset")
T = TypeVar("T")
DEFAULT = "vqascore"


class LocalSpeaker:
    """A `evaluation.scorers.prompted.Speaker` in this process.

    What it writes is kept in the answers of `models.language_models`, with its tokens; scores in `features.store`.
    """

    def __init__(self, model: VisionLanguageModel) -> None:
        self.model, self.identity = model, model.identity
        self._answers = Answers(cache_folder() / "answers")

    def write(self, asked: Sequence[Shown]) -> list[Answer]:
        return self._kept(asked, {"write": WRITTEN}, lambda one: self.model.write(one.images, one.text))

    def options(self, asked: Sequence[Shown], options: Sequence[str]) -> list[list[float] | str]:
        def likely(one: Shown) -> Answer:
            told = [float(each.sum()) for each in self.model.continued(one.images, one.text, options)]
            return Answer(json.dumps(told), NOT_A_NUMBER if np.isnan(told).any() else "stop")

        kept = self._kept(asked, {"options": list(options)}, likely)
        return [REFUSED if one.finish == REFUSED else json.loads(one.text) for one in kept]

    def yes(self, asked: Sequence[Shown]) -> list[float | str]:
        found: dict[tuple[Any, str], float | str] = {}
        for images, answers, some in _by_images(asked):
            texts = list(dict.fromkeys(one.text for one in some))
            told = _or_refused(partial(self.model.yes, images, texts, answers), len(texts))
            for text, said in zip(texts, told, strict=True):
                if isinstance(said, float) and np.isnan(said):
                    said = NOT_A_NUMBER
                found[_ids(images), text] = "no-answer" if said is None else said
        return [found[_ids(one.images), one.text] for one in asked]

    def likelihoods(self, asked: Sequence[tuple[Shown, str]]) -> list[Floats | str]:
        found: dict[tuple[Any, str, str], Floats | str] = {}
        for shown, some in groupby(asked, key=lambda one: (_ids(one[0].images), one[0].text)):
            pairs = list(some)
            texts = list(dict.fromkeys(text for _, text in pairs))
            told = _or_refused(partial(self.model.continued, *pairs[0][0][:2], texts), len(texts))
            for text, one in zip(texts, told, strict=True):
                found[*shown, text] = one if isinstance(one, str) else one.cpu().numpy()
        return [found[_ids(shown.images), shown.text, text] for shown, text in asked]

    def _kept(self, asked: Sequence[Shown], how: dict[str, Any], answer: Callable[[Shown], Answer]) -> list[Answer]:
        """Answers that are kept, and those that are made now and kept at once; a NaN is not kept."""
        images = {id(image): image for one in asked for image in one.images}
        names = {place: _sha256(image) for place, image in images.items()}
        digests = [digest([self.identity, how, [names[id(image)] for image in one.images], one.text]) for one in asked]
        known = self._answers.find(dict.fromkeys(digests))
        for of, one in zip(digests, asked, strict=True):
            if of not in known:
                try:
                    known[of] = answer(one)
                except ImageRefused as error:
                    _LOG.warning("%s", error)
                    known[of] = Answer(str(error), REFUSED)
                if known[of].finish not in (NOT_A_NUMBER, REFUSED):
                    self._answers.keep(of, str(self.model.folder), json.dumps(how), known[of])
        return [known[of] for of in digests]


def _or_refused(ask: Callable[[], Sequence[T]], count: int) -> list[T | str]:
    """What ``ask`` gives; `REFUSED` for each that was asked where the model's processor does not take the images."""
    try:
        return [*ask()]
    except ImageRefused as error:
        _LOG.warning("%s", error)
        return [REFUSED] * count


def _ids(images: Sequence[Image]) -> tuple[int, ...]:
    return tuple(map(id, images))


def _by_images(asked: Sequence[Shown]) -> list[tuple[tuple[Image, ...], tuple[str, str], list[Shown]]]:
    """Those that come together with the same images and the same answers."""
    grouped = [list(some) for _, some in groupby(asked, key=lambda one: (_ids(one.images), one.answers))]
    return [(some[0].images, some[0].answers, some) for some in grouped]


def _sha256(image: Image) -> str:
    """Of the pixels, which are all that the model sees."""
    return hashlib.sha256(f"{image.mode} {image.size} ".encode() + image.tobytes()).hexdigest()


def open_local(text: str, parts: Sequence[str], running: Running) -> Scorer:
    """A multimodal language model in this process, in float32: ``vlm:FOLDER``, or ``vlm/PROMPT:FOLDER``."""
    prompt = prompt_of(text.partition(":")[0].partition("/")[2] or DEFAULT, text)
    return prompted(text, prompt, LocalSpeaker(open_vision_language(parts[0], running)))


def _check(text: str, parts: Sequence[str]) -> None:
    prompt_of(text.partition(":")[0].partition("/")[2] or DEFAULT, text)
    find_vision_language(parts[0])


VLM = ModelKind(open_local, "FOLDER", check=_check, prompts=True)
