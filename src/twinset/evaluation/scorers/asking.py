"""Multimodal language models that are asked about images, in this process or on a server."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import cache_folder
from twinset.contracts.recipe.allowed import allow_key
from twinset.generators.record_fields import problems_of
from twinset.models.language_models.answers import NOT_A_NUMBER, REFUSED, Answer, Answers, Request
from twinset.models.language_models.settings import OpenAI

if TYPE_CHECKING:
    from PIL.Image import Image

    from twinset.models.visual_questions.vision_language import VisionLanguageModel

ADDRESS, KEY, SETTINGS = "OPENAI_BASE_URL", "OPENAI_API_KEY", "TWINSET_OPENAI"  # environment variables
WRITTEN = 300  # tokens of an answer
_EXAMPLE = """write such as '{"price_in": 2.5, "price_out": 10, "max_cost": 20}'"""
_OBJECT = TypeAdapter(dict[str, Any])


class LocalAsker:
    """A model in this process; what it writes is kept on disk, by model, question and sha256 of the pixels.

    identity: what decides its answers, besides what is asked.
    """

    def __init__(self, model: VisionLanguageModel) -> None:
        self.model, self.identity = model, model.identity
        self._answers = Answers(cache_folder() / "answers")

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """As `LanguageModel.ask`."""
        names = [None if request.words else self._name(request) for request in requests]
        kept = self._answers.find(name for name in names if name)
        asked = {
            place: request
            for place, (name, request) in enumerate(zip(names, requests, strict=True))
            if name not in kept
        }
        given = dict(zip(asked, self.model.ask([*asked.values()], WRITTEN), strict=True))
        for place, answer in given.items():
            if (name := names[place]) and answer.finish not in (REFUSED, NOT_A_NUMBER):
                self._answers.keep(name, str(self.model.folder), answer)
        return [given[place] if place in given else kept[name or ""] for place, name in enumerate(names)]

    def _name(self, request: Request) -> str:
        return digest([self.identity, WRITTEN, [_sha256(image.pixels) for image in request.images], request.text])


def _sha256(image: Image) -> str:
    """Of the pixels, which are all that the model sees."""
    return hashlib.sha256(f"{image.mode} {image.size} ".encode() + image.tobytes()).hexdigest()


class ServerAsker:
    """A model on a server, whose weights are not known."""

    def __init__(self, settings: OpenAI) -> None:
        self.ask = settings.open().ask
        self.identity = ["openai", settings.base_url, settings.model, settings.max_tokens]


def server_settings(text: str, model: str, max_tokens: int) -> OpenAI:
    """Settings from the environment: address, key, and all others as one JSON object. text: as ``--model`` has it."""
    given = {"kind": "openai", "model": model, "base_url": os.environ.get(ADDRESS, "")}
    given |= {"api_key_variable": KEY} if os.environ.get(KEY) else {}
    try:
        extra = _OBJECT.validate_json(os.environ.get(SETTINGS) or "{}")
        if twice := sorted(given.keys() & extra.keys()):
            what = f"{SETTINGS} has {twice[0]}, which --model, {ADDRESS} or {KEY} says"
            raise WrongUse(f"--model {text}: {what}; remove it")
        settings = OpenAI.model_validate({"max_tokens": max_tokens, "temperature": 0, **given, **extra})
    except ValidationError as error:
        raise WrongUse(f"--model {text}: {problems_of(error)}; correct {ADDRESS} or {SETTINGS}: {_EXAMPLE}") from error
    if settings.api_key_variable is not None:
        allow_key(settings.base_url, settings.api_key_variable)  # the environment is the operator's own word
    settings.check_inputs(f"--model {text}", frozenset({"media"}))
    return settings
