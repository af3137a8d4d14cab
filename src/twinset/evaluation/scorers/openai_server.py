"""Multimodal language models on a server that speaks OpenAI's API, asked by a prompt.

The client, its patience, the ceiling on cost and the answers on disk are those of `models.language_models`: an
answer is kept at once, by model, prompt and sha256 of the images, and never paid for twice. Images are sent as PNG.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.allowed import allow_key
from twinset.evaluation.scorers.prompted import Shown, prompted
from twinset.evaluation.scorers.prompts import ChoicePrompt, prompt_of
from twinset.generators.record_fields import problems_of
from twinset.models.encoders.contract import Floats, ModelKind, Running, Scorer
from twinset.models.language_models.answers import Answer, EncodedImage, Message, Request
from twinset.models.language_models.server_model import ServerModel
from twinset.models.visual_questions.server_model import VisionServer
from twinset.models.visual_questions.settings import Inquiry, Server, Unanswered

if TYPE_CHECKING:
    from PIL.Image import Image

ADDRESS, KEY, SETTINGS = "OPENAI_BASE_URL", "OPENAI_API_KEY", "TWINSET_OPENAI"  # environment variables


class FreeAnswers(Server):
    """As `Server`; answers are free text."""

    max_tokens: int = Field(default=300, ge=1, le=100_000)


class ServerSpeaker:
    """A `evaluation.scorers.prompted.Speaker` on a server; its weights are not known."""

    def __init__(self, settings: Server) -> None:
        self.settings = settings
        self.identity = ["openai", settings.model, settings.max_tokens]

    def write(self, asked: Sequence[Shown]) -> list[Answer]:
        encoded = _encoded(image for one in asked for image in one.images)
        requests = [
            Request((Message("user", one.text),), 0, tuple(encoded[id(image)] for image in one.images)) for one in asked
        ]
        return ServerModel(self.settings).answers(requests, {})

    def yes(self, asked: Sequence[Shown]) -> list[float | str]:
        encoded = _encoded(image for one in asked for image in one.images)
        found = list[float | str]()
        for answers, group in groupby(asked, key=lambda one: one.answers):
            inquiries = []
            for (image,), text, _ in group:
                sent = encoded[id(image)]
                inquiries.append(Inquiry(text, sent.content, sent.media_type, (text,)))
            told = VisionServer(self.settings, "", answers).answers(inquiries)
            found += [one.reason if isinstance(one, Unanswered) else one[0] for one in told]
        return found

    def options(self, asked: Sequence[Shown], options: Sequence[str]) -> list[list[float] | str]:
        raise WrongUse(f"{self.settings.model}: a server does not say how likely a text is; name vlm:FOLDER")

    def likelihoods(self, asked: Sequence[tuple[Shown, str]]) -> list[Floats | str]:
        raise WrongUse(f"{self.settings.model}: a server does not say how likely a text is; name vlm:FOLDER")


def open_server(default: str, text: str, parts: Sequence[str], running: Running) -> Scorer:
    """A multimodal language model on a server, asked by a prompt: ``KIND:MODEL``, or ``KIND/PROMPT:MODEL``.

    Args:
        default: prompt where none is named; another one must ask for the same.
    """
    named = text.partition(":")[0].partition("/")[2]
    prompt, usual = prompt_of(named or default, text), prompt_of(default, text)
    if prompt.asks != usual.asks:
        raise WrongUse(f"--model {text}: the prompt {named} asks for {prompt.asks}, not {usual.asks}; name another one")
    if isinstance(prompt, ChoicePrompt) and prompt.answer == "options":
        raise WrongUse(f"--model {text}: a server does not say how likely options are; name another prompt")
    free = isinstance(prompt, ChoicePrompt)
    return prompted(text, prompt, ServerSpeaker(_settings(text, parts[0], FreeAnswers if free else Server)))


def _settings(text: str, model: str, kind: type[Server]) -> Server:
    """Settings from the environment: address, key, and all others as one JSON object."""
    address = os.environ.get(ADDRESS)
    if not address:
        raise WrongUse(
            f"--model {text}: there is no environment variable {ADDRESS}; set it to the server's address, such as "
            "http://127.0.0.1:8000/v1"
        )
    try:
        others = json.loads(os.environ.get(SETTINGS) or "{}")
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"--model {text}: {SETTINGS} is not JSON ({error}); {_EXAMPLE}") from error
    if not isinstance(others, dict):
        raise WrongUse(f"--model {text}: {SETTINGS} is not a JSON object; {_EXAMPLE}")
    given = {"kind": "openai", "model": model, "base_url": address}
    if os.environ.get(KEY):
        given["api_key_variable"] = KEY
    if twice := sorted(given.keys() & others.keys()):
        raise WrongUse(f"--model {text}: {SETTINGS} has {twice[0]}, which --model, {ADDRESS} or {KEY} says; remove it")
    try:
        settings = kind.model_validate({**given, **others})
    except ValidationError as error:
        raise WrongUse(f"--model {text}: {problems_of(error)}; correct {ADDRESS} or {SETTINGS}: {_EXAMPLE}") from error
    if settings.api_key_variable is not None:
        allow_key(settings.base_url, settings.api_key_variable)  # the environment is the operator's own word
    settings.check_inputs(f"--model {text}", frozenset({"media"}))
    return settings


_EXAMPLE = """write such as '{"price_in": 2.5, "price_out": 10, "max_cost": 20}'"""


def _encoded(images: Iterable[Image]) -> dict[int, EncodedImage]:
    """Each image as it is sent, by its id; one that is there several times is encoded once."""
    return {place: EncodedImage.png(image) for place, image in {id(image): image for image in images}.items()}


def _kind(default: str) -> ModelKind:
    opens = partial(open_server, default)
    return ModelKind(opens, "MODEL", check=partial(opens, running=Running()), prompts=True)


CHOOSER, YES_OR_NO, VQASCORE = _kind("choose"), _kind("yes-no"), _kind("vqascore")
