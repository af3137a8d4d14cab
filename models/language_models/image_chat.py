"""Chats about an image with a model on a server."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from twinset.models.language_models.model import Message, Request
from twinset.models.language_models.server_model import ServerModel
from twinset.models.language_models.settings import OpenAI

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class EncodedImage:
    """An image as it is sent. media_type: such as ``image/jpeg``."""

    content: bytes
    media_type: str

    @classmethod
    def png(cls, image: Image) -> EncodedImage:
        """A decoded image as PNG, which keeps all pixels."""
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "PNG")
        return cls(buffer.getvalue(), "image/png")

    @cached_property
    def name(self) -> str:
        """It in requests, by what is sent."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"


class ImageChat(ServerModel):
    """Chats about images. In a request an image is named by its digest, so that one answer is kept for each.

    Args:
        image_tokens: the most that an image may cost, to stay below ``max_cost``.
        images: that requests are about.
    """

    def __init__(self, settings: OpenAI, image_tokens: int, images: Iterable[EncodedImage]) -> None:
        super().__init__(settings)
        self.image_tokens = image_tokens
        self.images = {one.name: one for one in images}

    def request(self, image: EncodedImage, text: str) -> Request:
        """A request with an image and a text."""
        return Request((Message("user", image.name), Message("user", text)), 0)

    def messages(self, request: Request) -> list[Any]:
        """As `ServerModel.messages`: one message with the image and the text."""
        name, text = (one.content for one in request.messages)
        image = self.images[name]
        encoded = base64.b64encode(image.content).decode()
        url = {"url": f"data:{image.media_type};base64,{encoded}"}
        parts = [{"type": "image_url", "image_url": url}, {"type": "text", "text": text}]
        return [{"role": "user", "content": parts}]

    def most_tokens(self, request: Request) -> int:
        """As `ServerModel.most_tokens`."""
        return super().most_tokens(request) + self.image_tokens
