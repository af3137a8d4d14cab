"""Models on servers, asked by the openai client; every answer is kept at once."""

from __future__ import annotations

import asyncio
import base64
import logging
import math
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, TypeVar

import openai

from twinset.contracts.canonical import digest
from twinset.contracts.errors import BuildFailed
from twinset.models.engines import Engine
from twinset.models.language_models import server_faults as faults
from twinset.models.language_models.answers import LIKELY, REFUSED, YES_NO, Answer, Answers, Request
from twinset.models.language_models.settings import OpenAI
from twinset.models.paid_server import PaidServer
from twinset.shards.metering import Tally, count

logger = logging.getLogger("twinset")

HANDED_OVER = 512  # requests at a time: enough for all that wait, few enough to hold their images in memory
TEMPLATE_TOKENS = 64  # that a server may add to a chat; never more than one token a byte of the rest
REFUSALS = 10  # of all requests of a batch: that is not the captions' fault
LONGEST_TEXT = 350  # tokens of an answer in words
ALTERNATIVES = 20  # tokens whose probability is asked for: as many as the API gives
POLL = 0.02  # seconds between two looks at what is spent

S = TypeVar("S", bound=PaidServer)


class PaidModel(Engine, Generic[S]):
    """A model that is asked through the openai client; subclasses say what is sent, and what comes.

    What a server answers is kept, and taken as it is: nothing depends on this machine, and its weights are not known.

    remedy: what to do where a server accepts nothing. pictures: bytes of them that an answer may hold.
    """

    micro_batch = HANDED_OVER
    remedy: ClassVar[str]
    pictures = 0

    def __init__(self, settings: S) -> None:
        self.settings = settings

    @abstractmethod
    def parameters(self, request: Request) -> dict[str, Any]:
        """Parameters of a request, but the model, messages and seed."""

    @abstractmethod
    async def send(self, client: openai.AsyncOpenAI, request: Request) -> bytes:
        """The body of the response to one try."""

    @abstractmethod
    def parsed(self, request: Request, content: bytes) -> Answer:
        """The answer in a body; raises `BrokenAnswer`."""

    @abstractmethod
    def most(self, request: Request) -> Tally:
        """The most that a request takes."""

    def kept(self, answer: Answer) -> Answer:
        """The answer as the file of answers holds it, when what does not belong there is on disk."""
        return answer

    def answered(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers that are kept, where there are any; the others are asked for and kept.

        A refusal is not kept: it costs nothing, and another build may meet a server with more room, or another filter.
        """
        # A request that is made twice is one.
        digests = [self._digest(request) for request in requests]
        known = self._answers.find(dict.fromkeys(digests))
        wanted = {name: request for name, request in zip(digests, requests, strict=True) if name not in known}
        if wanted:
            refused = asyncio.run(_Batch(self, self._answers).ask(wanted))
            known |= self._answers.find(wanted)
            tally = self._answers.spent(self.settings.model)
            logger.info("%s: %s", self.settings.model, tally)
            if not known and (len(refused) >= REFUSALS or not tally.answers):
                where, message = f"{self.settings.base_url} ({self.settings.model})", next(iter(refused.values()))
                raise BuildFailed(f"{where} accepts none of {len(refused)} requests ({message}); {self.remedy}")
            known |= {name: Answer(why, REFUSED) for name, why in refused.items()}
        for answer in known.values():
            count(answer.tally)
        return [known[name] for name in digests]

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self.settings.answers_folder)

    def _digest(self, request: Request) -> str:
        turns = [*(["user", image.name] for image in request.images), *(list(turn) for turn in request.messages)]
        words = [] if request.words in (None, YES_NO) else [request.words]
        server = [self.settings.base_url, self.settings.model]  # another server may name another model so
        return digest([*server, self.parameters(request), turns, request.seed, *words])


class ServerModel(PaidModel[OpenAI]):
    """As `models.language_models.answers.LanguageModel`."""

    remedy = "where it does not know a parameter, set answer_format or token_limit, and run the same command again"

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """As `LanguageModel.ask`."""
        answers = self.answered(requests)
        return [
            # The file of answers holds a probability as the text.
            replace(answer, text="", probability=float(answer.text))
            if request.words and answer.text and answer.finish != REFUSED
            else answer
            for request, answer in zip(requests, answers, strict=True)
        ]

    def parameters(self, request: Request) -> dict[str, Any]:
        settings = self.settings
        most = settings.max_tokens or (1 if request.words else LONGEST_TEXT)
        if request.words:
            return {"temperature": 0, "max_tokens": most, "logprobs": True, "top_logprobs": ALTERNATIVES}
        chosen: dict[str, Any] = {"temperature": settings.temperature or 0, "max_tokens": most}
        if settings.top_p < 1:
            chosen["top_p"] = settings.top_p
        if request.schema is not None and settings.answer_format == "json-schema":
            held = {"name": "answer", "strict": True, "schema": request.schema}
            chosen["response_format"] = {"type": "json_schema", "json_schema": held}
        return chosen

    async def send(self, client: openai.AsyncOpenAI, request: Request) -> bytes:
        given = {**self.parameters(request), "seed": request.seed}
        given[self.settings.token_limit] = given.pop("max_tokens")
        response = await client.chat.completions.with_raw_response.create(
            model=self.settings.model, messages=_messages(request), **given
        )
        content: bytes = response.http_response.content
        return content

    def parsed(self, request: Request, content: bytes) -> Answer:
        """As `PaidModel.parsed`; raises `BuildFailed` where tokens are not counted and their cost has a ceiling."""
        completion = faults.Completion.read(content)
        if completion.usage is None and self.settings.max_cost is not None:  # so it would be of the next answer
            raise BuildFailed(
                f"{self.settings.model}: the server does not count tokens (`usage`), so their cost is unknown; leave "
                "max_cost out"
            )
        usage, choice = completion.usage or Tally(), completion.choices[0]
        text = faults.printable(choice.message.content or "")
        finish = faults.printable(choice.finish_reason or "")[: faults.SHOWN]
        if request.words:
            share = _probability(completion.alternatives(), text, request.words)
            text = "" if share is None else repr(share)
        return Answer(text, finish, usage.prompt_tokens, usage.completion_tokens)

    def most(self, request: Request) -> Tally:
        texts = sum(len(turn.content.encode("utf-8", "replace")) + TEMPLATE_TOKENS for turn in request.messages)
        read = texts + (TEMPLATE_TOKENS + self.settings.image_tokens) * len(request.images)
        return Tally(1, read, self.parameters(request)["max_tokens"])


def _messages(request: Request) -> list[Any]:
    """The messages of a request as the API has them, its images before the text of the last one."""
    *turns, last = (turn._asdict() for turn in request.messages)
    if request.images:
        encoded = ((image.media_type, base64.b64encode(image.content).decode()) for image in request.images)
        urls = [f"data:{media_type};base64,{content}" for media_type, content in encoded]
        shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        last["content"] = [*shown, {"type": "text", "text": last["content"]}]
    return [*turns, last]


_WORD = re.compile(r"\W*(\w+)")
#: A letter or digit alone or before its option: "a kite" begins with an article.
_LETTER = re.compile(r"(?i)\W*(?:(?:the )?(?:correct )?(?:answer|option)(?: is)?\b\W*)?([a-z\d])(?:\W*$|[:.)\]*\"'])")


def _probability(alternatives: Sequence[tuple[str, float]], text: str, words: tuple[str, str]) -> float | None:
    """The probability of the first of two words, mostly yes and no, by the alternatives to the first token:

        p = sum over tokens "yes" of exp(logprob) / sum over tokens "yes" and "no" of exp(logprob)

    1 or 0 by the text where a server gives no probabilities of either; None where both together have less than
    `LIKELY`, or the text has neither.
    """
    shares = dict.fromkeys(words, 0.0)
    for token, logprob in alternatives:
        word = token.strip().strip(".,!()").lower()
        if word in shares and logprob <= 0:
            shares[word] += math.exp(logprob)
    if (total := sum(shares.values())) > 0:
        return shares[words[0]] / total if total >= LIKELY else None
    match = (_LETTER if all(len(word) == 1 for word in words) else _WORD).match(text)
    return dict(zip(words, (1.0, 0.0), strict=True)).get(match[1].lower()) if match else None


@cache
def _say_where(server: str, variable: str | None) -> None:
    """Name the host and the variable of the first requests of this process, on the screen."""
    logger.warning("requests go to %s with %s", server, "no key" if variable is None else f"the key in {variable}")


class _Batch:
    """Requests that are asked side by side. What fails one of them ends the batch, after those that are under way."""

    def __init__(self, model: PaidModel[Any], answers: Answers) -> None:
        self.model, self.settings, self.answers = model, model.settings, answers
        self.failure: Exception | None = None
        self.refused: dict[str, str] = {}
        self.reserved: list[float] = []  # the most that each request under way can cost

    async def ask(self, wanted: Mapping[str, Request]) -> dict[str, str]:
        """Ask and keep requests, by their digests; raises `BuildFailed` when the server or the ceiling on cost ends it.

        Returns: what the server said to those that it did not accept.
        """
        settings, queue = self.settings, deque(wanted.items())

        async def work(client: openai.AsyncOpenAI) -> None:
            while queue and self.failure is None:
                try:
                    await self._one(client, *queue.popleft())
                except Exception as error:
                    self.failure = self.failure or error

        _say_where(settings.base_url, settings.api_key_variable)
        async with faults.client_of(settings, self.model.pictures) as client:
            await asyncio.gather(*(work(client) for _ in range(min(settings.concurrency, len(wanted)))))
        if self.failure is not None:
            raise self.failure
        return self.refused

    async def _one(self, client: openai.AsyncOpenAI, name: str, request: Request) -> None:
        async def attempt() -> Answer:
            try:
                return self.model.parsed(request, await self.model.send(client, request))
            # The client wraps what its transport raises.
            except (faults.BrokenAnswer, openai.APIConnectionError) as error:
                if faults.BrokenAnswer in (*type(error).__mro__, type(error.__cause__)):
                    await asyncio.to_thread(self.answers.count, self.settings.model, self.model.most(request))
                raise

        most = self.settings.cost(self.model.most(request)) or 0.0
        await self._reserve(most)
        try:
            if self.failure is not None:  # while this request waited for the others
                return
            answer = await faults.patiently(attempt, self.settings, lambda: self.failure is not None or self._over())
            await asyncio.to_thread(self.answers.keep, name, self.settings.model, self.model.kept(answer))
        except faults.Refused as error:
            self.refused[name] = str(error)
        finally:
            self.reserved.remove(most)

    def _over(self, more: float = 0.0) -> bool:
        """Whether the requests under way, and what one more can cost, may go above the ceiling."""
        spent = self.settings.cost(self.answers.spent(self.settings.model)) or 0.0
        ceiling = self.settings.max_cost
        return ceiling is not None and spent + sum(self.reserved) + more > ceiling

    async def _reserve(self, most: float) -> None:
        """Wait until a request fits below the ceiling, whatever those under way will cost."""
        ceiling = self.settings.max_cost
        while ceiling is not None and self.failure is None:
            if not self._over(most):
                break
            if not self.reserved:
                tally = self.answers.spent(self.settings.model)
                spent = self.settings.cost(tally) or 0.0
                raise BuildFailed(
                    f"{self.settings.model}: max_cost is {ceiling:g}; the answers in {self.answers.path} took {tally}, "
                    f"which cost {spent:.4f}, and the next one could cost {most:.4f}. Raise max_cost and run the same "
                    "command again: what was answered stays"
                )
            await asyncio.sleep(POLL)
        self.reserved.append(most)
