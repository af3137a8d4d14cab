"""A vision-language model on a server, asked for yes or no; every answer is kept at once.

The client, its patience, the ceiling on cost and the answers on disk are those of `models.language_models`.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, cast

from twinset.models.language_models.answers import REFUSED, YES_NO, Answer, EncodedImage, Message, Request
from twinset.models.language_models.server_faults import parsed
from twinset.models.language_models.server_model import OnServer, ServerModel
from twinset.models.visual_questions.settings import INSTRUCTION, Answers, Inquiry, Server, Unanswered

ALTERNATIVES = 20  # tokens whose probability is asked for: as many as the API gives
HANDED_OVER = 64  # images at a time


class VisionServer(OnServer):
    """An engine (`models.visual_questions.settings.VisualQuestionAnswerer`) on a server."""

    micro_batch = HANDED_OVER

    def __init__(self, settings: Server) -> None:
        self.settings = settings

    def answers(self, inquiries: Sequence[Inquiry]) -> list[Answers]:
        images = [EncodedImage(one.image, one.media_type) for one in inquiries]
        model = ProbabilityModel(self.settings, YES_NO)
        requests = [
            Request((Message("user", f"{question} {INSTRUCTION}"),), 0, (image,))
            for image, one in zip(images, inquiries, strict=True)
            for question in one.questions
        ]
        told = iter(model.answers(requests, {}))
        return [_probabilities(one, [next(told) for _ in one.questions]) for one in inquiries]


class ProbabilityModel(ServerModel):
    """Chats that are answered with the probability of the first of two words among both."""

    def __init__(self, settings: Server, words: tuple[str, str]) -> None:
        super().__init__(settings)
        self.words = words

    def parsed(self, content: bytes, counted: bool) -> Answer:
        """As `ServerModel.parsed`; the text is the probability of yes, or empty where neither yes nor no is likely."""
        answer = parsed(content, counted)
        found = _probability(json.loads(content), answer.text, self.words)
        text = "" if found is None else repr(found)
        return Answer(text, answer.finish, answer.prompt_tokens, answer.completion_tokens)

    def _parameters(self, schema: Any) -> dict[str, Any]:
        chosen = super()._parameters(schema)
        return {**chosen, "logprobs": True, "top_logprobs": ALTERNATIVES}


_WORD = re.compile(r"\W*(\w+)")
#: A letter or digit alone or before its option: "a kite" begins with an article.
_LETTER = re.compile(r"(?i)\W*(?:(?:the )?(?:correct )?(?:answer|option)(?: is)?\b\W*)?([a-z\d])(?:\W*$|[:.)\]*\"'])")


def _probability(completion: Any, text: str, words: tuple[str, str]) -> float | None:
    """The probability of the first of two words, mostly yes and no, by the alternatives to the first token:

        p = sum over tokens "yes" of exp(logprob) / sum over tokens "yes" and "no" of exp(logprob)

    1 or 0 by the text where a server gives no probabilities; None where neither word is there.
    """
    shares = dict.fromkeys(words, 0.0)
    for token, logprob in _alternatives(completion):
        word = token.strip().strip(".,!()").lower()
        if word in shares and logprob <= 0:
            shares[word] += math.exp(logprob)
    if (total := sum(shares.values())) > 0:
        return shares[words[0]] / total
    found = (_LETTER if all(len(word) == 1 for word in words) else _WORD).match(text)
    return dict(zip(words, (1.0, 0.0), strict=True)).get(found[1].lower()) if found else None


def _alternatives(completion: Any) -> list[tuple[str, float]]:
    """Tokens and log-probabilities at the first place of an answer; empty where a server does not give them."""
    try:
        first = completion["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return [(str(one["token"]), float(one["logprob"])) for one in first]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return []


def _probabilities(inquiry: Inquiry, told: Sequence[Answer]) -> Answers:
    for question, answer in zip(inquiry.questions, told, strict=True):
        if answer.finish == REFUSED:
            return Unanswered("refused", f"{answer.text[:200]}: {question[:200]}")
        if not answer.text:
            return Unanswered("no-answer", question[:200])
    return cast(Answers, [float(one.text) for one in told])
