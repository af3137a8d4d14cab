"""Multimodal language models, in this process or on a server, behind one protocol: `Asker`."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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


class Asker(Protocol):
    """A model that is asked about images. identity: what decides its answers, besides what is asked."""

    identity: list[Any]

    def ask(self, asked: Sequence[Asked]) -> list[Answer]:
        """The answer to each. Where two are allowed, its text is P(first) / (P(first) + P(second)), of the first token
        in all spellings, or "" for neither. ``finish`` is `REFUSED` or `NOT_A_NUMBER` where there is no answer.
        """


class LocalAsker:
    """A model in this process; what it answers is kept on disk, by model, question and sha256 of the pixels."""

    def __init__(self, model: VisionLanguageModel) -> None:
        self.model, self.identity = model, model.identity
        self._answers = Answers(cache_folder() / "answers")

    def ask(self, asked: Sequence[Asked]) -> list[Answer]:
        names = [
            digest([self.identity, one.answers or WRITTEN, [*map(_sha256, one.images)], one.text]) for one in asked
        ]
        known = self._answers.find(names)
        fresh = {name: one for name, one in zip(names, asked, strict=True) if name not in known}
        for _, some in groupby(fresh.items(), lambda named: (*map(id, named[1].images), named[1].answers)):
            group = dict(some)
            (images, _, answers), texts = next(iter(group.values())), [one.text for one in group.values()]
            for name, answer in zip(group, self._about(images, texts, answers), strict=True):
                known[name] = answer
                if answer.finish not in (NOT_A_NUMBER, REFUSED):
                    self._answers.keep(name, str(self.model.folder), json.dumps(answers), answer)
        return [known[name] for name in names]

    def _about(self, images: Sequence[Image], texts: Sequence[str], answers: tuple[str, str] | None) -> list[Answer]:
        """Answers about images, which go through the network once for all texts with two answers."""
        try:
            if answers is None:
                return [self.model.write(images, text) for text in texts]
            chances = self.model.yes(images, texts, answers)
        except ImageRefused as error:
            _LOG.warning("%s", error)
            return [Answer(str(error), REFUSED)] * len(texts)
        return [Answer("", NOT_A_NUMBER) if one != one else Answer("" if one is None else repr(one)) for one in chances]


def _sha256(image: Image) -> str:
    """Of the pixels, which are all that the model sees."""
    return hashlib.sha256(f"{image.mode} {image.size} ".encode() + image.tobytes()).hexdigest()


class ServerAsker:
    """A model on a server that speaks OpenAI's API, which gets images as PNG; its weights are not known.

    Client, patience, ceiling on cost and answers on disk are those of `models.language_models`: an answer is kept at
    once, and never paid for twice.
    """

    def __init__(self, settings: Server) -> None:
        self.settings = settings
        self.identity = ["openai", settings.model, settings.max_tokens]

    def ask(self, asked: Sequence[Asked]) -> list[Answer]:
        images = {id(image): image for one in asked for image in one.images}
        encoded = {place: EncodedImage.png(image) for place, image in images.items()}
        found: dict[int, Answer] = {}
        for answers in dict.fromkeys(one.answers for one in asked):
            places = [place for place, one in enumerate(asked) if one.answers == answers]
            requests = [
                Request((Message("user", one.text),), 0, tuple(encoded[id(image)] for image in one.images))
                for one in asked
                if one.answers == answers
            ]
            model = ServerModel(self.settings) if answers is None else ProbabilityModel(self.settings, answers)
            found |= zip(places, model.answers(requests, {}), strict=True)
        return [found[place] for place in range(len(asked))]


def server_settings(text: str, model: str, max_tokens: int) -> Server:
    """Settings from the environment: address, key, and all others as one JSON object.

    Args:
        text: as ``--model`` has it. max_tokens: of an answer, unless the environment says another number.
    """
    if not (address := os.environ.get(ADDRESS)):
        raise WrongUse(
            f"--model {text}: there is no environment variable {ADDRESS}; set it to the server's address, such as "
            "http://127.0.0.1:8000/v1"
        )
    given = {"kind": "openai", "model": model, "base_url": address}
    given |= {"api_key_variable": KEY} if os.environ.get(KEY) else {}
    try:
        others = _OBJECT.validate_json(os.environ.get(SETTINGS) or "{}")
        if twice := sorted(given.keys() & others.keys()):
            raise WrongUse(
                f"--model {text}: {SETTINGS} has {twice[0]}, which --model, {ADDRESS} or {KEY} says; remove it"
            )
        settings = Server.model_validate({"max_tokens": max_tokens, **given, **others})
    except ValidationError as error:
        raise WrongUse(f"--model {text}: {problems_of(error)}; correct {ADDRESS} or {SETTINGS}: {_EXAMPLE}") from error
    if settings.api_key_variable is not None:
        allow_key(settings.base_url, settings.api_key_variable)  # the environment is the operator's own word
    settings.check_inputs(f"--model {text}", frozenset({"media"}))
    return settings
