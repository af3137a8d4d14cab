"""Multimodal language models on a server that speaks OpenAI's API: asked to choose a caption, or for yes or no.

The client, its patience, the ceiling on cost and the answers on disk are those of `models.language_models`: an
answer is kept at once, by model, prompt and sha256 of the image, and never paid for twice. Images are sent as PNG.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pydantic import Field, ValidationError

from twinset.evaluation.answers.parser import parse
from twinset.manifests.canonical import digest
from twinset.manifests.errors import WrongUse
from twinset.manifests.recipe.permissions import allow_key
from twinset.models.encoders.contract import Chooser, Floats, Matcher, ModelKind, Running
from twinset.models.language_models.answers import REFUSED
from twinset.models.language_models.server_model import EncodedImage, ImageChat
from twinset.models.visual_questions.server_model import INSTRUCTION, VisionServer
from twinset.models.visual_questions.settings import Inquiry, Server, Unanswered

if TYPE_CHECKING:
    from PIL.Image import Image

_LOG = logging.getLogger("twinset")

ADDRESS, KEY, SETTINGS = "OPENAI_BASE_URL", "OPENAI_API_KEY", "TWINSET_OPENAI"  # environment variables
#: SugarCrepe's, as released with the answers of GPT-4V.
CHOICE = "Which caption best describes the image?\n(1) {}\n (2) {}\nOutput (1) or (2)."
#: Question and instruction. The second is VQAScore's (Lin et al. 2024).
YES_NO = ("Does this image show: '{}'?", INSTRUCTION)
VQA_SCORE = ('Does this figure show "{}"?', "Please answer yes or no.")
UNDECIDED = 0.5  # the score of a pair that the model does not answer for: it is for neither caption


class ChooserSettings(Server):
    """As `Server`; answers are free text."""

    max_tokens: int = Field(default=300, ge=1, le=100_000)


S = TypeVar("S", bound=Server)


class ServerChooser(Chooser):
    """Shown an image with two captions, it answers in its own words; `evaluation.answers.parser` reads them.

    unparsed: answers without a choice, so far.
    """

    def __init__(self, name: str, settings: ChooserSettings) -> None:
        self.name, self.settings, self.unparsed = name, settings, 0

    def digest(self) -> str:
        """As `models.encoders.contract.Scorer.digest`; the server's weights are not known."""
        return digest(["openai-chooser", self.settings.model, self.settings.max_tokens, CHOICE])

    def choose(self, images: Sequence[Image], captions: Sequence[tuple[str, str]]) -> list[int | None]:
        encoded = _encoded(images)
        chat = ImageChat(self.settings, self.settings.image_tokens, encoded)
        requests = [chat.request(image, CHOICE.format(*two)) for image, two in zip(encoded, captions, strict=True)]
        chosen = list[int | None]()
        for answer, two in zip(chat.answers(requests, {}), captions, strict=True):
            choice = None if answer.finish == REFUSED else parse(answer.text, two).choice
            chosen.append(None if choice is None else choice - 1)
        if None in chosen:
            self.unparsed += chosen.count(None)
            _LOG.warning("%s: %d answers so far name no caption", self.name, self.unparsed)
        return chosen


class ServerYesNo(Matcher):
    """Asked whether an image shows a text. The score is P(yes) / (P(yes) + P(no)) of the first token.

    Where a server gives no log-probabilities it is 1 or 0 by the word. `UNDECIDED` where there is neither.

    Args:
        form: question with a place for the text, and instruction.
    """

    threshold = 0.5  # yes is likelier than no

    def __init__(self, name: str, settings: Server, form: tuple[str, str]) -> None:
        self.name, self.settings, self.unanswered = name, settings, 0
        self.form, self.server = form, VisionServer(settings, form[1])

    def digest(self) -> str:
        """As `models.encoders.contract.Scorer.digest`; the server's weights are not known."""
        return digest(["openai-yes-no", self.settings.model, self.settings.max_tokens, *self.form])

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> Floats:
        inquiries = [
            Inquiry(text, image.content, image.media_type, (self.form[0].format(text.strip()),))
            for image, text in zip(_encoded(images), texts, strict=True)
        ]
        answers = self.server.answers(inquiries)
        if without := [one for one in answers if isinstance(one, Unanswered)]:
            self.unanswered += len(without)
            said = f"{without[-1].reason}: {without[-1].detail}"
            _LOG.warning("%s: %d pairs so far are neither yes nor no (%s)", self.name, self.unanswered, said)
        return np.array([UNDECIDED if isinstance(one, Unanswered) else one[0] for one in answers], np.float32)


def open_chooser(text: str, parts: Sequence[str], running: Running) -> ServerChooser:
    """``openai-chooser:MODEL``."""
    return ServerChooser(text, _settings(text, parts[0], ChooserSettings))


def open_yes_no(text: str, parts: Sequence[str], running: Running, form: tuple[str, str] = YES_NO) -> ServerYesNo:
    """``openai-yesno:MODEL``, or in VQAScore's words ``openai-vqascore:MODEL``."""
    return ServerYesNo(text, _settings(text, parts[0], Server), form)


open_vqa_score = partial(open_yes_no, form=VQA_SCORE)


def _settings(text: str, model: str, kind: type[S]) -> S:
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
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise WrongUse(f"--model {text}: {problems}; correct {ADDRESS} or {SETTINGS}: {_EXAMPLE}") from error
    if settings.api_key_variable is not None:
        allow_key(settings.base_url, settings.api_key_variable)  # the environment is the operator's own word
    settings.check_inputs(f"--model {text}", frozenset({"media"}))
    return settings


_EXAMPLE = """write such as '{"price_in": 2.5, "price_out": 10, "max_cost": 20}'"""


def _encoded(images: Sequence[Image]) -> list[EncodedImage]:
    """Each image as it is sent; one that is there several times is encoded once."""
    once = {id(image): image for image in images}
    encoded = {place: EncodedImage.png(image) for place, image in once.items()}
    return [encoded[id(image)] for image in images]


CHOOSER, YES_OR_NO, VQASCORE = (
    ModelKind(opens, "MODEL", check=partial(opens, running=Running()))
    for opens in (open_chooser, open_yes_no, open_vqa_score)
)
