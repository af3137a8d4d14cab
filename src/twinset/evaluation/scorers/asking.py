"""Multimodal language models that are asked about images, in this process or on a server."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import cache_folder
from twinset.contracts.recipe.allowed import allow_key
from twinset.generators.record_fields import problems_of
from twinset.models.language_models.answers import REFUSED, Answer, Answers, EncodedImage, Message, Request
from twinset.models.language_models.server_model import ServerModel
from twinset.models.visual_questions.server_model import ProbabilityModel
from twinset.models.visual_questions.settings import Server
from twinset.models.visual_questions.vision_language import NOT_A_NUMBER, WRITTEN, ImageRefused, VisionLanguageModel

if TYPE_CHECKING:
    from PIL.Image import Image

ADDRESS, KEY, SETTINGS = "OPENAI_BASE_URL", "OPENAI_API_KEY", "TWINSET_OPENAI"  # environment variables
_EXAMPLE = """write such as '{"price_in": 2.5, "price_out": 10, "max_cost": 20}'"""
_OBJECT = TypeAdapter(dict[str, Any])
_LOG = logging.getLogger("twinset")


class Asked(NamedTuple):
    """Images, then a text. answers: both that are allowed; None where it is answered in the model's own words."""

    images: tuple[Image, ...]
    text: str
    answers: tuple[str, str] | None = None


class LocalAsker:
    """A model in this process; what it writes is kept on disk, by model, question and sha256 of the pixels.

    identity: what decides its answers, besides what is asked.
    """

    def __init__(self, model: VisionLanguageModel) -> None:
        self.model, self.identity = model, model.identity
        self._answers = Answers(cache_folder() / "answers")

    def ask(self, asked: Sequence[Asked]) -> list[Answer]:
        """The answer to each. Where two are allowed, its text is P(first) / (P(first) + P(second)), of the first token
        in all spellings, or "" for neither. ``finish`` is `REFUSED` or `NOT_A_NUMBER` where there is no answer.
        """
        alike = groupby(asked, lambda question: (*map(id, question.images), question.answers))
        return [answer for _, questions in alike for answer in self._about([*questions])]

    def _about(self, asked: Sequence[Asked]) -> list[Answer]:
        """Answers about images, which go through the network once for all texts with two answers."""
        images, _, answers = asked[0]
        try:
            if answers is None:
                return [self._written(question) for question in asked]
            chances = self.model.yes(images, [question.text for question in asked], answers)
        except ImageRefused as error:
            _LOG.warning("%s", error)
            return [Answer(str(error), REFUSED)] * len(asked)
        return [Answer("", NOT_A_NUMBER) if one != one else Answer("" if one is None else repr(one)) for one in chances]

    def _written(self, question: Asked) -> Answer:
        name = digest([self.identity, WRITTEN, [*map(_sha256, question.images)], question.text])
        if (kept := self._answers.find([name]).get(name)) is not None:
            return kept
        answer = self.model.write(question.images, question.text)
        if answer.finish != NOT_A_NUMBER:
            self._answers.keep(name, str(self.model.folder), "null", answer)
        return answer


def _sha256(image: Image) -> str:
    """Of the pixels, which are all that the model sees."""
    return hashlib.sha256(f"{image.mode} {image.size} ".encode() + image.tobytes()).hexdigest()


class ServerAsker:
    """The same on a server that speaks OpenAI's API, which gets images as PNG; its weights are not known."""

    def __init__(self, settings: Server) -> None:
        self.settings = settings
        self.identity = ["openai", settings.model, settings.max_tokens]

    def ask(self, asked: Sequence[Asked]) -> list[Answer]:
        """As `LocalAsker.ask`."""
        images = {id(image): image for question in asked for image in question.images}
        encoded = {place: EncodedImage.png(image) for place, image in images.items()}
        replies: dict[int, Answer] = {}
        for answers in {question.answers for question in asked}:
            places = [place for place, question in enumerate(asked) if question.answers == answers]
            requests = []
            for text, shown in ((asked[place].text, asked[place].images) for place in places):
                requests.append(Request((Message("user", text),), 0, tuple(encoded[id(image)] for image in shown)))
            model = ServerModel(self.settings) if answers is None else ProbabilityModel(self.settings, answers)
            replies |= zip(places, model.answers(requests, {}), strict=True)
        return [replies[place] for place in range(len(asked))]


def server_settings(text: str, model: str, max_tokens: int) -> Server:
    """Settings from the environment: address, key, and all others as one JSON object. text: as ``--model`` has it."""
    given = {"kind": "openai", "model": model, "base_url": os.environ.get(ADDRESS, "")}
    given |= {"api_key_variable": KEY} if os.environ.get(KEY) else {}
    try:
        others = _OBJECT.validate_json(os.environ.get(SETTINGS) or "{}")
        if twice := sorted(given.keys() & others.keys()):
            what = f"{SETTINGS} has {twice[0]}, which --model, {ADDRESS} or {KEY} says"
            raise WrongUse(f"--model {text}: {what}; remove it")
        settings = Server.model_validate({"max_tokens": max_tokens, **given, **others})
    except ValidationError as error:
        raise WrongUse(f"--model {text}: {problems_of(error)}; correct {ADDRESS} or {SETTINGS}: {_EXAMPLE}") from error
    if settings.api_key_variable is not None:
        allow_key(settings.base_url, settings.api_key_variable)  # the environment is the operator's own word
    settings.check_inputs(f"--model {text}", frozenset({"media"}))
    return settings
