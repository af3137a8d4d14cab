"""Pictures from a server of OpenAI's images API; every one is kept at once, and paid for once.

The client, its patience, the ceiling on cost and the file of answers are those of `models.language_models`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openai

from twinset.contracts.errors import BuildFailed
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.models.image_engine import Drawn, ImageGenerator, Request
from twinset.models.images_server.settings import ServedImages
from twinset.models.language_models import answers
from twinset.models.language_models.answers import REFUSED, STOP, Answer, Message
from twinset.models.language_models.server_faults import BrokenAnswer, WrongForm
from twinset.models.language_models.server_model import HANDED_OVER, PaidModel
from twinset.shards.media.decode import UnreadableImage, open_image
from twinset.shards.metering import Tally
from twinset.shards.storage.whole_file import whole_file

SEEDS = 2**31  # servers take no larger ones


class ImagesModel(PaidModel[ServedImages]):
    """The model of a server.

    The text of an answer is the sha256 of its picture, a file beside the file of answers.
    """

    remedy = "where it takes neither seed nor response_format, set plain; see options, and run the same command again"

    def __init__(self, settings: ServedImages) -> None:
        super().__init__(settings)
        width, height = map(int, settings.size.split("x"))
        self.pictures = width * height * 12  # 8 bytes a pixel, two for each of 4 channels, are 11 as base64

    def parameters(self, request: answers.Request) -> dict[str, Any]:
        given: dict[str, Any] = {**self.settings.options, "n": 1, "size": self.settings.size}
        return given if self.settings.plain else {**given, "response_format": "b64_json"}

    async def send(self, client: openai.AsyncOpenAI, request: answers.Request) -> bytes:
        given = {"model": self.settings.model, "prompt": request.text, **self.parameters(request)}
        # Not among the parameters of the client, which is for OpenAI's own models.
        more = {name: given.pop(name) for name in self.settings.options}
        if not self.settings.plain:
            more["seed"] = request.seed
        images: Any = client.images.with_raw_response
        response = await images.generate(**given, extra_body=more)
        content: bytes = response.http_response.content
        return content

    def parsed(self, request: answers.Request, content: bytes) -> Answer:
        """The picture as base64, decoded once to see that it is whole."""
        try:
            text = json.loads(content)["data"][0]["b64_json"]
            open_image(base64.b64decode(text, validate=True))
        except (ValueError, LookupError, TypeError, RecursionError, binascii.Error, UnreadableImage) as error:
            body = content.decode("utf-8", "replace")
            last = isinstance(error, LookupError | TypeError) and b'"error"' not in content
            raise (WrongForm if last else BrokenAnswer)(f"no picture as b64_json ({error!r:.100}): {body!r}") from error
        return Answer(text, STOP)

    def most(self, request: answers.Request) -> Tally:
        return Tally(1)

    def kept(self, answer: Answer) -> Answer:
        content = base64.b64decode(answer.text)
        sha256 = hashlib.sha256(content).hexdigest()
        with whole_file(self._file(sha256)) as beside:
            beside.write_bytes(content)
        return Answer(sha256, answer.finish)

    def drawn(self, requests: Sequence[answers.Request]) -> Iterator[tuple[str, Pixels | str]]:
        """The sha256 and the pixels of each answer; for a refusal nothing, and what the server said.

        Raises `BuildFailed`: the model cannot be used now, or a file that was kept is not there any more.
        """
        for answer in self.answered(requests):
            yield ("", answer.text) if answer.finish == REFUSED else (answer.text, self._read(answer.text))

    def _read(self, sha256: str) -> Pixels:
        path = self._file(sha256)
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content).hexdigest() != sha256:
            raise BuildFailed(
                f"{path}: is not the picture that was paid for; restore it, or name another folder for answers: all "
                "pictures are then asked and paid for again"
            )
        return np.asarray(open_image(content).convert("RGB"))

    def _file(self, sha256: str) -> Path:
        return self.settings.answers_folder / "images" / sha256[:2] / f"{sha256}.bin"


def _asked(prompt: str, seed: int) -> answers.Request:
    return answers.Request((Message("user", prompt),), seed=seed % SEEDS)


def _provenance(settings: ServedImages, sha256: str, seed: int) -> dict[str, Any]:
    asked = None if settings.plain else seed % SEEDS
    return {"model": settings.model, "options": dict(settings.options), "seed": asked, "answer_sha256": sha256}


class ServedPainter(ImageGenerator):
    """As `ImageGenerator`."""

    micro_batch = HANDED_OVER
    version = 1
    libraries = ("pillow",)

    def __init__(self, settings: ServedImages) -> None:
        self.settings, self.model = settings, ImagesModel(settings)

    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        size = self.settings.size
        pictures = self.model.drawn([_asked(request.prompt, request.seed) for request in requests])
        for request, (sha256, pixels) in zip(requests, pictures, strict=True):
            if isinstance(pixels, str):
                yield Rejected(request.key, "refused", pixels[:200])
            elif (given := f"{pixels.shape[1]}x{pixels.shape[0]}") != size:
                yield Rejected(request.key, "other-size", f"{given} instead of {size}")
            elif (pixels == pixels[0, 0]).all():
                yield Rejected(request.key, "blank")
            else:
                yield Drawn(request.key, pixels, {**_provenance(self.settings, sha256, request.seed), "size": size})
