"""Images that tests show to a model on a server, what they ask about them, and what it answers."""

import base64
import io
import json
import math
from collections.abc import Sequence

from PIL import Image

from tests.models.language_models.chat_server import Body, Reply, completion
from twinset.evaluation.examples import Matching, Picture
from twinset.evaluation.scorers.kinds import open_model
from twinset.evaluation.scorers.prompted import PromptedChooser
from twinset.models.encoders.contract import Question, Running

RED, BLUE = (Image.new("RGB", (8, 6), colour) for colour in ("red", "blue"))
CAPTIONS = ("a red wall without windows", "a blue wall without windows")


def png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def matching(key: str, captions: tuple[str, str] = CAPTIONS) -> Matching:
    """The two images, each with a caption."""
    pictures = (Picture("red", lambda: png(RED)), Picture("blue", lambda: png(BLUE)))
    return Matching(key=key, subset="s", group="g", images=pictures, captions=captions)


def chooser(text: str = "openai-chooser:m") -> PromptedChooser:
    found = open_model(text, Running())
    assert isinstance(found, PromptedChooser)
    return found


def asked(images: Sequence[Image.Image], captions: Sequence[tuple[str, str]] = ()) -> list[Question]:
    """Which caption fits each image."""
    shown = zip(images, captions or [CAPTIONS] * len(images), strict=True)
    return [Question("text", (image,), two) for image, two in shown]


def seen(body: Body) -> tuple[tuple[int, int, int], str]:
    """The colour of the image of a request, and its text."""
    image, text = body["messages"][0]["content"]
    kind, _, encoded = image["image_url"]["url"].partition(";base64,")
    assert kind == "data:image/png"
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as opened:
        assert opened.size == (8, 6)
        return opened.getpixel((0, 0)), text["text"]  # type: ignore[return-value]


def looks(body: Body, _: int) -> Reply:
    """A model that sees: it chooses the caption with the colour of the image."""
    colour, text = seen(body)
    right = CAPTIONS[colour != (255, 0, 0)]
    return completion("Caption (1)." if f"(1) {right}" in text else "The second one fits best.")


def likely(**probabilities: float) -> Reply:
    """A completion with alternatives to its first token."""
    reply = completion("Yes")
    body = json.loads(reply.content)
    top = [{"token": token, "logprob": math.log(share)} for token, share in probabilities.items()]
    body["choices"][0]["logprobs"] = {"content": [{"token": "Yes", "logprob": 0, "top_logprobs": top}]}
    reply.content = json.dumps(body).encode()
    return reply
