"""The HTTP client for servers of models, what their answers hold, and which faults are retried or end a build."""

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import openai
from pydantic import BaseModel, Field, ValidationError

from twinset.contracts.errors import BuildFailed
from twinset.contracts.recipe.allowed import OPENAI_KEY
from twinset.models.paid_server import PaidServer

T = TypeVar("T")
_LOG = logging.getLogger("twinset")

_SHOWN = set[str]()  # servers of which a fault was shown: many requests meet it together
CONNECT = 10.0  # seconds that a server may take to be connected to: one that is not there may refuse nothing
FIRST_WAIT = 0.5  # seconds; doubled with every try
_LATER = (408, 409, 425, 429)
_OF_THE_REQUEST = (400, 413, 422)
_OF_THE_ACCOUNT = ("billing_hard_limit_reached", "insufficient_quota")  # codes, with status 400 or 429
SHOWN = 300  # characters of a server's message
LONGEST_ANSWER = 1 << 24  # bytes, unpacked, without pictures: 100,000 tokens are a few million
#: What is no longer true of a body that was read and unpacked.
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
#: Of requests. OpenAI's client adds others from the environment: OPENAI_ORG_ID, OPENAI_CUSTOM_HEADERS.
_HEADERS = {
    *("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"),
    "user-agent",
}


class Refused(Exception):
    """The server answers, but does not accept this request."""


class BrokenAnswer(Exception):
    """What came is not an answer."""


class WrongForm(BrokenAnswer):
    """What came is whole, and of another form, as it would be again."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Hands requests to the named server alone: what they say is not sent on to another one that it names.

    Args:
        key: that is sent.
        of_openai: whether it is OpenAI's, so that the headers go along that OpenAI's client takes from the environment.
        longest: bytes of an answer, unpacked.
    """

    def __init__(self, key: str, of_openai: bool, longest: int) -> None:
        super().__init__(follow_redirects=False)
        self._key, self._of_openai, self._longest = key, of_openai, longest

    async def send(self, request: Any, *, stream: bool = False, **settings: Any) -> Any:
        """The response with its whole body, whatever ``stream`` says.

        Raises `BrokenAnswer` for a body of more than ``longest`` bytes, of which no more is read.
        """
        if not self._of_openai:
            for name in [*request.headers]:
                if name not in _HEADERS and not name.startswith("x-stainless-"):  # the client's own
                    del request.headers[name]
            request.headers["authorization"] = f"Bearer {self._key}"
        response = await super().send(request, stream=True, **settings)
        body = bytearray()
        try:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > self._longest:
                    raise BrokenAnswer(f"an answer of more than {self._longest:,} bytes")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WIRE]
        return type(response)(response.status_code, headers=headers, content=bytes(body), request=request)


def client_of(settings: PaidServer, pictures: int) -> openai.AsyncOpenAI:
    """The client for a server. Retries are `patiently`'s; a try ends by the clock, not when a server falls silent.

    pictures: bytes of them that an answer may hold.
    """
    key = settings.api_key()
    return openai.AsyncOpenAI(
        base_url=settings.base_url,
        api_key=key,
        max_retries=0,
        timeout=openai.Timeout(None, connect=CONNECT),
        http_client=BoundedClient(key, settings.api_key_variable == OPENAI_KEY, LONGEST_ANSWER + pictures),
    )


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Usage(BaseModel):
    # A number below 0 would lift the ceiling on cost; one that no model reads would not fit into the file of answers.
    prompt_tokens: int = Field(0, ge=0, le=10**9)
    completion_tokens: int = Field(0, ge=0, le=10**9)


class Completion(BaseModel):
    """A chat completion, as far as it is read."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None

    @classmethod
    def read(cls, content: bytes) -> "Completion":
        """That in the body of a response; raises `BrokenAnswer` where it holds none."""
        try:
            return cls.model_validate(json.loads(content))
        except (ValueError, RecursionError) as error:
            # Servers that ask others say their faults, which may pass, with status 200.
            last = isinstance(error, ValidationError) and b'"error"' not in content
            raise (WrongForm if last else BrokenAnswer)(
                f"not a chat completion: {content.decode('utf-8', 'replace')!r}"
            ) from error

    def alternatives(self) -> list[tuple[str, float]]:
        """Tokens and log-probabilities at the first place of the answer; empty where a server does not give them."""
        try:
            first = self.choices[0].logprobs["content"][0]["top_logprobs"]
            return [(str(each["token"]), float(each["logprob"])) for each in first]
        except (KeyError, IndexError, TypeError, ValueError, OverflowError):
            return []


def printable(text: str) -> str:
    """A text without half surrogate pairs, which can be in JSON, and in no file."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _without_key(text: str, settings: PaidServer) -> str:
    """What a server says, printable, where it may repeat the header with the key."""
    return printable(text).replace(settings.api_key(), "***") if settings.api_key_variable else printable(text)


async def patiently(ask: Callable[[], Awaitable[T]], settings: PaidServer, hopeless: Callable[[], bool]) -> T:
    """What ``ask`` returns, tried again after faults that may pass.

    Waits double from half a second, less a random part so that requests spread; a server's ``Retry-After`` counts
    instead, and at least half a second. Neither is longer than ``longest_wait``. The first wait for a server is shown,
    the others are in the log.

    Args:
        hopeless: whether the build fails anyway, or another try could cost too much, so that nothing is tried again.

    Raises:
        Refused: the server does not accept this request.
        BuildFailed: the server stays away, refuses all requests alike, or its answers have another form.
    """
    where = f"{settings.base_url} ({settings.model})"
    for attempt in range(settings.retries + 1):
        wait, last = FIRST_WAIT * 2**attempt * random.uniform(0.5, 1), False
        try:
            async with asyncio.timeout(settings.timeout):
                return await ask()
        except openai.APIStatusError as error:
            problem, asked = _status_problem(error, settings), error.response.headers.get("retry-after", "")
            wait = max(FIRST_WAIT, float(asked)) if asked.isdecimal() else wait
        except openai.APITimeoutError:
            problem = f"no connection within {CONNECT:g} seconds"
        except TimeoutError:
            problem = f"no answer within {settings.timeout:g} seconds"
        except openai.APIConnectionError as error:
            problem = f"{error} ({error.__cause__ or 'no cause given'})"
        except (BrokenAnswer, openai.APIError, UnicodeDecodeError) as error:
            problem, last = str(error), isinstance(error, WrongForm)
        problem = _without_key(problem, settings)
        if last or attempt == settings.retries or hopeless():
            break
        wait = min(wait, settings.longest_wait)
        level = logging.INFO if where in _SHOWN else logging.WARNING
        _SHOWN.add(where)
        again = f"asked again in {wait:.3g} s, at most {settings.retries - attempt} times more"
        _LOG.log(level, "%s: %s; %s", where, problem[:SHOWN], again)
        await asyncio.sleep(wait)
    remedy = "see that the server works, and run the same command again: what was answered stays"
    raise BuildFailed(f"{where}: tried {attempt + 1} times, last: {problem[: 2 * SHOWN]}; {remedy}")


def _status_problem(error: openai.APIStatusError, settings: PaidServer) -> str:
    """What a server says in a fault that may pass; raises `Refused` or `BuildFailed` for another one."""
    body: Any = error.body
    message = body.get("message") if isinstance(body, dict) else None
    status, where = error.status_code, f"{settings.base_url} ({settings.model})"
    problem = _without_key(f"{status}: {message or error.response.text or error}", settings)[:SHOWN]
    # From None: the client's error repeats the whole message.
    if error.code in _OF_THE_ACCOUNT:
        raise BuildFailed(f"{where} is not paid for ({problem}); raise the account's limit, or pay") from None
    if status in _OF_THE_REQUEST:
        raise Refused(problem) from None
    if status < 400:  # a redirect, or nothing new
        onward = _without_key(error.response.headers.get("location", "nowhere"), settings)[:SHOWN]
        raise BuildFailed(
            f"{where} sends requests on ({status}) to {onward}, which are not sent there; set base_url to an address "
            "that answers itself"
        ) from None
    if status not in _LATER and status < 500:
        remedy = "correct base_url, model or the key in api_key_variable"
        raise BuildFailed(f"{where} refuses requests ({problem}); {remedy}") from None
    return problem
