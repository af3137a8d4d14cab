"""A language model on a server, asked by the openai client; every answer is kept at once."""

from __future__ import annotations

import asyncio
import base64
import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import openai

from twinset.contracts.canonical import canonical_json, digest
from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe.allowed import OPENAI_KEY
from twinset.models.language_models.answers import REFUSED, Answer, Answers, Request, Schema, tally_of
from twinset.models.language_models.server_faults import CONNECT, BoundedClient, Refused, parsed, patiently
from twinset.models.language_models.settings import OpenAI
from twinset.models.paid_server import PaidServer
from twinset.shards.metering import Tally, count

logger = logging.getLogger("twinset")

HANDED_OVER = 2048  # requests at a time: enough for all that wait, little to hold in memory
TEMPLATE_TOKENS = 64  # that a server may add to a chat; never more than one token a byte of the rest
REFUSALS = 10  # of the first requests: no request will be accepted


class OnServer:
    """As `models.engines.Engine`, of a model that runs elsewhere."""

    micro_batch = HANDED_OVER
    threads = 1

    def device(self) -> None:
        """What a server answers is kept, and taken as it is: nothing depends on this machine."""

    def weights(self) -> Mapping[str, str]:
        """The server's are not known."""
        return {}

    def with_micro_batch(self, micro_batch: int) -> Self:
        """Nothing is made on this machine, so that its memory does not run out."""
        raise NotImplementedError("a server's answers take no memory that a smaller batch would save")


S = TypeVar("S", bound=PaidServer)


class PaidModel(OnServer, Generic[S]):
    """A model that is asked through the openai client; subclasses say what is asked, and what comes.

    remedy: what to do where a server accepts nothing.
    """

    remedy: ClassVar[str]

    def __init__(self, settings: S) -> None:
        self.settings = settings

    @abstractmethod
    async def ask(self, client: openai.AsyncOpenAI, request: Request, parameters: Mapping[str, Any]) -> bytes:
        """The body of the response to one try."""

    @abstractmethod
    def parsed(self, content: bytes, counted: bool) -> Answer:
        """The answer in a body; raises `BrokenAnswer`. counted: whether tokens must be counted."""

    @abstractmethod
    def most(self, request: Request) -> Tally:
        """The most that a request takes."""

    def kept(self, answer: Answer) -> Answer:
        """The answer as the file of answers holds it, when what does not belong there is on disk."""
        return answer

    def asked(self, requests: Sequence[Request], parameters: Mapping[str, Any]) -> list[Answer]:
        """Answers that are kept, where there are any; the others are asked for and kept.

        A refusal is not kept: it costs nothing, and another build may meet a server with more room, or another filter.

        Args:
            parameters: of all requests, but the model and what a request says itself.
        """
        # A request that is made twice is one.
        digests = [_digest(self.settings.model, parameters, one) for one in requests]
        known = self._answers.find(dict.fromkeys(digests))
        wanted = {of: one for of, one in zip(digests, requests, strict=True) if of not in known}
        if wanted:
            self._answers.make_room()
            batch = _Batch(self, self._answers, parameters)
            asyncio.run(batch.ask(wanted))
            known |= self._answers.find(wanted)
            refused = {of: Answer(why, REFUSED) for of, why in batch.refused.items()}
            if not known and len(refused) >= REFUSALS:
                raise BuildFailed(
                    f"{self.settings.base_url} ({self.settings.model}) accepts none of {len(refused)} requests "
                    f"({next(iter(batch.refused.values()))}), though it accepted others before; see that it has loaded "
                    "the model, with room for prompts and answers, and run the same command again"
                )
            known |= refused
            tally = self._answers.spent(self.settings.model)
            logger.info("%s: %s", self.settings.model, in_words(self.settings, tally))
        for one in known.values():
            count(tally_of(one))
        return [known[one] for one in digests]

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self.settings.answers_folder)


class ServerModel(PaidModel[OpenAI]):
    """As `models.language_models.answers.LanguageModel`."""

    remedy = "where it does not know a parameter, set answer_format or token_limit, and run the same command again"

    def answers(self, requests: Sequence[Request], schema: Schema) -> list[Answer]:
        """As `LanguageModel.answers`."""
        return self.asked(requests, self._parameters(schema))

    async def ask(self, client: openai.AsyncOpenAI, request: Request, parameters: Mapping[str, Any]) -> bytes:
        given = {**parameters, "seed": request.seed}
        given[self.settings.token_limit] = given.pop("max_tokens")
        response = await client.chat.completions.with_raw_response.create(
            model=self.settings.model, messages=self.messages(request), **given
        )
        content: bytes = response.http_response.content
        return content

    def most(self, request: Request) -> Tally:
        return Tally(1, self.most_tokens(request), self.settings.max_tokens)

    def messages(self, request: Request) -> list[Any]:
        """The messages of a request as the API has them, its images before the text of the last one."""
        *turns, last = ({"role": one.role, "content": one.content} for one in request.messages)
        parts: list[Any] = []
        for image in request.images:
            encoded = base64.b64encode(image.content).decode()
            parts.append({"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{encoded}"}})
        if not parts:
            return [*turns, last]
        return [*turns, {**last, "content": [*parts, {"type": "text", "text": last["content"]}]}]

    def parsed(self, content: bytes, counted: bool) -> Answer:
        return parsed(content, counted)

    def most_tokens(self, request: Request) -> int:
        """The most tokens that are read for a request."""
        texts = sum(len(one.content.encode("utf-8", "replace")) + TEMPLATE_TOKENS for one in request.messages)
        return texts + (TEMPLATE_TOKENS + self.settings.image_tokens) * len(request.images)

    def _parameters(self, schema: Schema) -> dict[str, Any]:
        """Parameters of every request, but the model and what a request says itself."""
        settings = self.settings
        chosen: dict[str, Any] = {"temperature": settings.temperature, "max_tokens": settings.max_tokens}
        if settings.top_p < 1:
            chosen["top_p"] = settings.top_p
        if settings.answer_format == "json-schema":
            held = {"name": "answer", "strict": True, "schema": schema}
            chosen["response_format"] = {"type": "json_schema", "json_schema": held}
        elif settings.answer_format == "json-object":
            chosen["response_format"] = {"type": "json_object"}
        return chosen


def in_words(settings: PaidServer, tally: Tally) -> str:
    cost = settings.cost(tally)
    return str(tally) if cost is None else f"{tally}, cost {cost:.4f}"


def _digest(model: str, parameters: Mapping[str, Any], request: Request) -> str:
    said = [*(["user", image.name] for image in request.images), *(list(one) for one in request.messages)]
    return digest([model, parameters, said, request.seed])


@cache
def _say_where(server: str, variable: str | None) -> None:
    """Name the host and the variable of the first requests of this process, on the screen."""
    logger.warning("requests go to %s with %s", server, "no key" if variable is None else f"the key in {variable}")


class _Batch:
    """Requests that are asked side by side. What fails one of them ends the batch, after those that are under way.

    refused: what the server said to requests that it did not accept, by digest.
    """

    def __init__(self, model: PaidModel[Any], answers: Answers, parameters: Mapping[str, Any]) -> None:
        self.model, self.settings, self.answers, self.parameters = model, model.settings, answers, parameters
        self.named = canonical_json(parameters).decode()
        self.failure: Exception | None = None
        self.refused: dict[str, str] = {}
        self.reserved = dict[str, float]()  # the most that each request under way can cost
        self.settled = asyncio.Condition()

    async def ask(self, wanted: Mapping[str, Request]) -> None:
        """Ask and keep; raises `BuildFailed` when the server or the ceiling on cost ends it."""
        settings = self.settings
        queue = deque(wanted.items())

        async def work(client: openai.AsyncOpenAI) -> None:
            while queue and self.failure is None:
                of, request = queue.popleft()
                try:
                    await self._one(client, of, request)
                except Exception as error:
                    self.failure = self.failure or error

        _say_where(settings.base_url, settings.api_key_variable)
        # Retries are this module's own, and a try ends by the clock, not when a server falls silent.
        async with openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=settings.api_key(),
            max_retries=0,
            timeout=openai.Timeout(None, connect=CONNECT),
            http_client=BoundedClient(settings.api_key(), settings.api_key_variable == OPENAI_KEY),
        ) as client:
            await asyncio.gather(*(work(client) for _ in range(min(settings.concurrency, len(wanted)))))
        if self.failure is not None:
            raise self.failure
        self._refuse_if_all_were_refused()

    async def _one(self, client: openai.AsyncOpenAI, of: str, request: Request) -> None:
        settings = self.settings
        await self._reserve(of, self._most(request))
        try:
            if self.failure is not None:  # while this request waited for the others
                return
            answer = await patiently(
                lambda: self._try(client, request),
                f"{settings.base_url} ({settings.model})",
                settings.timeout,
                settings.retries,
                settings.longest_wait,
                lambda: self.failure is not None,
            )
            await asyncio.to_thread(self._keep, of, answer)
        except Refused as error:
            self.refused[of] = str(error)
            if len(self.refused) >= REFUSALS:
                self._refuse_if_all_were_refused()
        finally:
            async with self.settled:
                del self.reserved[of]
                self.settled.notify_all()

    async def _try(self, client: openai.AsyncOpenAI, request: Request) -> Answer:
        content = await self.model.ask(client, request, self.parameters)
        return self.model.parsed(content, counted=self.settings.max_cost is not None)

    def _keep(self, of: str, answer: Answer) -> None:
        self.answers.keep(of, self.settings.model, self.named, self.model.kept(answer))

    def _refuse_if_all_were_refused(self) -> None:
        """A server that never accepted a request is not set up as the recipe says: that is not the captions' fault."""
        if self.refused and not self.answers.answered(self.settings.model, self.named):
            where, said = f"{self.settings.base_url} ({self.settings.model})", next(iter(self.refused.values()))
            raise BuildFailed(f"{where} accepts no request ({said}); {self.model.remedy}")

    def _most(self, request: Request) -> float:
        return self.settings.cost(self.model.most(request)) or 0.0

    async def _reserve(self, of: str, most: float) -> None:
        """Wait until a request fits below the ceiling, whatever those under way will cost."""
        ceiling = self.settings.max_cost
        async with self.settled:
            while ceiling is not None:
                tally = self.answers.spent(self.settings.model)
                spent = self.settings.cost(tally) or 0.0
                if spent + sum(self.reserved.values()) + most <= ceiling:
                    break
                if not self.reserved:
                    raise BuildFailed(
                        f"{self.settings.model}: max_cost is {ceiling:g}; the answers in {self.answers.path} took "
                        f"{in_words(self.settings, tally)}, and the next one could cost {most:.4f}. Raise max_cost "
                        "and run the same command again: what was answered stays"
                    )
                await self.settled.wait()
            self.reserved[of] = most
