"""A vision-language model on a server, asked for yes or no; every answer is kept at once.

The client, its patience, the ceiling on cost and the answers on disk are those of `generators.language_models`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from generators.image_verification.engine import Answers, Inquiry, Unanswered
from generators.image_verification.settings import Server
from generators.language_models.model import REFUSED, Answer, Message, Request
from generators.language_models.server_faults import parsed
from generators.language_models.server_model import ServerModel

INSTRUCTION = "Answer the question about the image with one word, yes or no."
ALTERNATIVES = 20  # tokens whose probability is asked for: as many as the API gives
HANDED_OVER = 64  # images at a time


class VisionServer:
    """An engine (`generators.image_verification.engine.VisualQuestionAnswering`) on a server."""

    micro_batch = HANDED_OVER
    threads = 1

    def __init__(self, settings: Server) -> None:
        self.settings = settings

    def device(self) -> None:
        """What a server answers is kept, and taken as it is: nothing depends on this machine."""

    def weights(self) -> dict[str, str]:
        """The server's are not known."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> VisionServer:
        """Nothing is made on this machine, so that its memory does not run out."""
        raise NotImplementedError("a server's answers take no memory that a smaller batch would save")

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        """As `VisualQuestionAnswering.answers`."""
        model = _Chat(self.settings, inquiries)
        requests = [request for one in inquiries for request in model.requests(one)]
        told = iter(model.answers(requests, {}))
        return [_probabilities(one, [next(told) for _ in one.questions]) for one in inquiries]


class _Chat(ServerModel):
    """Chats about images. In a request an image is named by its digest, so that one answer is kept for each."""

    def __init__(self, settings: Server, inquiries: Sequence[Inquiry]) -> None:
        super().__init__(settings)
        self.image_tokens = settings.image_tokens
        self.images = {_name(one): one for one in inquiries}

    def requests(self, inquiry: Inquiry) -> Iterator[Request]:
        """A request a question."""
        name = _name(inquiry)
        for question in inquiry.questions:
            yield Request((Message("user", name), Message("user", f"{question} {INSTRUCTION}")), 0)

    def messages(self, request: Request) -> list[Any]:
        """As `ServerModel.messages`: one message with the image and the question."""
        name, question = (one.content for one in request.messages)
        image = self.images[name]
        encoded = base64.b64encode(image.image).decode()
        url = {"url": f"data:{image.media_type};base64,{encoded}"}
        parts = [{"type": "image_url", "image_url": url}, {"type": "text", "text": question}]
        return [{"role": "user", "content": parts}]

    def parsed(self, content: bytes, counted: bool) -> Answer:
        """As `ServerModel.parsed`; the text is the probability of yes, or empty where neither yes nor no is likely."""
        answer = parsed(content, counted)
        found = _probability(json.loads(content), answer.text)
        text = "" if found is None else repr(found)
        return Answer(text, answer.finish, answer.prompt_tokens, answer.completion_tokens)

    def most_tokens(self, request: Request) -> int:
        """As `ServerModel.most_tokens`."""
        return super().most_tokens(request) + self.image_tokens

    def _parameters(self, schema: Any) -> dict[str, Any]:
        chosen = super()._parameters(schema)
        return {**chosen, "logprobs": True, "top_logprobs": ALTERNATIVES}


def _name(inquiry: Inquiry) -> str:
    return f"sha256:{hashlib.sha256(inquiry.image).hexdigest()}"


def _probability(completion: Any, text: str) -> float | None:
    """The probability of yes among yes and no, by the alternatives to the first token:

        p = sum over tokens "yes" of exp(logprob) / sum over tokens "yes" and "no" of exp(logprob)

    1 or 0 by the text where a server gives no probabilities; None where neither word is there.
    """
    shares = {"yes": 0.0, "no": 0.0}
    for token, logprob in _alternatives(completion):
        word = token.strip().strip(".,!").lower()
        if word in shares and logprob <= 0:
            shares[word] += math.exp(logprob)
    if (total := sum(shares.values())) > 0:
        return shares["yes"] / total
    words = text.strip().lower().replace(",", " ").replace(".", " ").split()
    return {"yes": 1.0, "no": 0.0}.get(words[0]) if words else None


def _alternatives(completion: Any) -> list[tuple[str, float]]:
    """Tokens and log-probabilities at the first place of an answer; empty where a server does not give them."""
    try:
        first = completion["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return [(str(one["token"]), float(one["logprob"])) for one in first]
    except (KeyError, IndexError, TypeError, ValueError):
        return []


def _probabilities(inquiry: Inquiry, told: Sequence[Answer]) -> Answers:
    for question, answer in zip(inquiry.questions, told, strict=True):
        if answer.finish == REFUSED:
            return Unanswered("refused", f"{answer.text[:200]}: {question[:200]}")
        if not answer.text:
            return Unanswered("no-answer", question[:200])
    return cast(Answers, [float(one.text) for one in told])
