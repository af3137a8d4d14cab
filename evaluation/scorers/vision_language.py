"""``vlm:FOLDER``: multimodal language models in this process, asked by a prompt; what they write is kept on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from twinset.evaluation.scorers.prompted import Shown, prompted
from twinset.evaluation.scorers.prompts import prompt_of
from twinset.manifests.canonical import digest
from twinset.manifests.locations import cache_folder
from twinset.models.encoders.contract import Floats, ModelKind, Running, Scorer
from twinset.models.language_models.answers import Answer, Answers
from twinset.models.visual_questions.vision_language import (
    NOT_A_NUMBER,
    WRITTEN,
    VisionLanguageModel,
    find_vision_language,
)

if TYPE_CHECKING:
    from PIL.Image import Image

DEFAULT = "vqascore"


class LocalSpeaker:
    """A `evaluation.scorers.prompted.Speaker` in this process.

    What it writes is kept in the answers of `models.language_models`, with its tokens; scores in `features.store`.
    """

    def __init__(self, model: VisionLanguageModel) -> None:
        self.model, self.identity = model, model.identity
        self._answers = Answers(cache_folder() / "answers")

    def write(self, asked: Sequence[Shown]) -> list[Answer]:
        return self._kept(asked, {"write": WRITTEN}, lambda one: self.model.write(*one))

    def options(self, asked: Sequence[Shown], options: Sequence[str]) -> list[list[float]]:
        def likely(one: Shown) -> Answer:
            told = [float(each.sum()) for each in self.model.continued(*one, options)]
            return Answer(json.dumps(told), NOT_A_NUMBER if np.isnan(told).any() else "stop")

        return [json.loads(one.text) for one in self._kept(asked, {"options": list(options)}, likely)]

    def yes(self, asked: Sequence[Shown]) -> list[float | str]:
        found: dict[tuple[Any, str], float | str] = {}
        for images, some in _by_images(asked):
            texts = list(dict.fromkeys(one.text for one in some))
            for text, said in zip(texts, self.model.yes(images, texts), strict=True):
                known = said is not None and not np.isnan(said)
                found[_ids(images), text] = said if known else "no-answer" if said is None else NOT_A_NUMBER  # type: ignore[assignment]
        return [found[_ids(one.images), one.text] for one in asked]

    def likelihoods(self, asked: Sequence[tuple[Shown, str]]) -> list[Floats]:
        found: dict[tuple[Any, str, str], Floats] = {}
        for shown, some in groupby(asked, key=lambda one: (_ids(one[0].images), one[0].text)):
            pairs = list(some)
            texts = list(dict.fromkeys(text for _, text in pairs))
            told = self.model.continued(*pairs[0][0], texts)
            found |= {(*shown, text): one.cpu().numpy() for text, one in zip(texts, told, strict=True)}
        return [found[_ids(shown.images), shown.text, text] for shown, text in asked]

    def _kept(self, asked: Sequence[Shown], how: dict[str, Any], answer: Callable[[Shown], Answer]) -> list[Answer]:
        """Answers that are kept, and those that are made now and kept at once; a NaN is not kept."""
        images = {id(image): image for one in asked for image in one.images}
        names = {place: _sha256(image) for place, image in images.items()}
        digests = [digest([self.identity, how, [names[id(image)] for image in one.images], one.text]) for one in asked]
        known = self._answers.find(dict.fromkeys(digests))
        for of, one in zip(digests, asked, strict=True):
            if of not in known:
                known[of] = answer(one)
                if known[of].finish != NOT_A_NUMBER:
                    self._answers.keep(of, str(self.model.folder), json.dumps(how), known[of])
        return [known[of] for of in digests]


def _ids(images: Sequence[Image]) -> tuple[int, ...]:
    return tuple(map(id, images))


def _by_images(asked: Sequence[Shown]) -> list[tuple[tuple[Image, ...], list[Shown]]]:
    grouped = [list(some) for _, some in groupby(asked, key=lambda one: _ids(one.images))]
    return [(some[0].images, some) for some in grouped]


def _sha256(image: Image) -> str:
    """Of the pixels, which are all that the model sees."""
    return hashlib.sha256(f"{image.mode} {image.size} ".encode() + image.tobytes()).hexdigest()


def open_local(text: str, parts: Sequence[str], running: Running) -> Scorer:
    """A multimodal language model in this process, in float32: ``vlm:FOLDER``, or ``vlm/PROMPT:FOLDER``."""
    prompt = prompt_of(text.partition(":")[0].partition("/")[2] or DEFAULT, text)
    return prompted(text, prompt, LocalSpeaker(VisionLanguageModel(parts[0], running)))


def _check(text: str, parts: Sequence[str]) -> None:
    prompt_of(text.partition(":")[0].partition("/")[2] or DEFAULT, text)
    find_vision_language(parts[0])


VLM = ModelKind(open_local, "FOLDER", check=_check, prompts=True)
