"""The HTTP client for servers of language models, and faults on the way: which are retried, which end a build."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import openai
from pydantic import BaseModel, Field, ValidationError

from twinset.contracts.errors import BuildFailed
from twinset.models.language_models.answers import Answer

T = TypeVar("T")
_LOG = logging.getLogger("twinset")

QUIET = 600.0  # seconds until trouble of one server is shown again; every wait is in the log
_SHOWN = dict[str, float]()  # when, by server
CONNECT = 10.0  # seconds that a server may take to be connected to: one that is not there may refuse nothing
FIRST_WAIT = 0.5  # seconds; doubled with every try
_LATER = (408, 409, 425, 429)
_OF_THE_REQUEST = (400, 413, 422)
SHOWN = 300  # characters of a server's message
LONGEST_ANSWER = 1 << 24  # bytes, unpacked: 100,000 tokens are a few million
_CHUNK = 1 << 16  # bytes
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
    """What came is not a chat completion."""


class Uncounted(BrokenAnswer):
    """What came does not say how many tokens it took."""


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """Hands requests to the named server alone: what they say is not sent on to another one that it names.

    Args:
        key: that is sent.
        of_openai: whether it is OpenAI's, so that the headers go along that OpenAI's client takes from the environment.
    """

    def __init__(self, key: str, of_openai: bool) -> None:
        super().__init__(follow_redirects=False)
        self._key, self._of_openai = key, of_openai

    async def send(self, request: Any, *, stream: bool = False, **settings: Any) -> Any:
        """The response with its whole body, whatever ``stream`` says.

        Raises `BrokenAnswer` for a body of more than `LONGEST_ANSWER` bytes, of which no more is read.
        """
        if not self._of_openai:
            for name in [*request.headers]:
                if name not in _HEADERS and not name.startswith("x-stainless-"):  # the client's own
                    del request.headers[name]
            request.headers["authorization"] = f"Bearer {self._key}"
        response = await super().send(request, stream=True, **settings)
        body = bytearray()
        try:
            async for part in response.aiter_bytes(_CHUNK):
                body += part
                if len(body) > LONGEST_ANSWER:
                    raise BrokenAnswer(f"an answer of more than {LONGEST_ANSWER:,} bytes")
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WIRE]
        return type(response)(response.status_code, headers=headers, content=bytes(body), request=request)


class _Said(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    # A number below 0 would lift the ceiling on cost; one that no model reads would not fit into the file of answers.
    prompt_tokens: int = Field(ge=0, le=10**9)
    completion_tokens: int = Field(ge=0, le=10**9)


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


def parsed(content: bytes, counted: bool) -> Answer:
    """The answer in the body of a response; raises `BrokenAnswer` where it holds none.

    Args:
        counted: whether tokens must be counted, since their cost is; raises `Uncounted` where they are not.
    """
    try:
        completion = _Completion.model_validate(json.loads(content))
        choice = completion.choices[0]
    except (ValueError, ValidationError, IndexError, RecursionError) as error:
        raise BrokenAnswer(f"not a chat completion: {content[:SHOWN].decode('utf-8', 'replace')!r}") from error
    if counted and completion.usage is None:
        raise Uncounted("the server does not count tokens (`usage`), so their cost is unknown; leave max_cost out")
    usage = completion.usage or _Usage(prompt_tokens=0, completion_tokens=0)
    text, finish = _as_text(choice.message.content or ""), _as_text(choice.finish_reason or "")[:SHOWN]
    return Answer(text, finish, usage.prompt_tokens, usage.completion_tokens)


def _as_text(said: str) -> str:
    """It without half surrogate pairs, which can be in JSON, and in no file."""
    return said.encode("utf-8", "replace").decode("utf-8")


async def patiently(
    ask: Callable[[], Awaitable[T]],
    where: str,
    timeout: float,
    retries: int,
    longest_wait: float,
    hopeless: Callable[[], bool],
) -> T:
    """What ``ask`` returns, tried again after faults that may pass.

    Waits double from half a second, less a random part so that requests spread; a server's ``Retry-After`` counts
    instead. Neither is longer than ``longest_wait``. The first wait for a server is shown at once, and only that.

    Args:
        where: the address, for messages.
        timeout: seconds for one try.
        retries: tries after the first one.
        hopeless: whether the build fails anyway, so that nothing is tried again.

    Raises:
        Refused: the server does not accept this request.
        BuildFailed: the server stays away, or refuses all requests alike, such as those with a wrong key.
    """
    for attempt in range(retries + 1):
        wait = FIRST_WAIT * 2**attempt * random.uniform(0.5, 1)
        try:
            async with asyncio.timeout(timeout):
                return await ask()
        except openai.APIStatusError as error:
            status, said = error.status_code, f"{error.status_code}: {_message(error)}"
            if status in _OF_THE_REQUEST:
                raise Refused(said) from error
            if status < 400:  # a redirect, or nothing new
                onward = _as_text(error.response.headers.get("location", "nowhere"))[:SHOWN]
                raise BuildFailed(
                    f"{where} sends requests on ({status}) to {onward}, which are not sent there; set base_url to an "
                    "address that answers itself"
                ) from error
            if status not in _LATER and status < 500:
                remedy = "correct base_url, model or the key in api_key_variable"
                raise BuildFailed(f"{where} refuses requests ({said}); {remedy}") from error
            problem, wait = said, _asked_wait(error, wait)
        except openai.APITimeoutError:
            problem = f"no connection within {CONNECT:g} seconds"
        except TimeoutError:
            problem = f"no answer within {timeout:g} seconds"
        except openai.APIConnectionError as error:
            problem = f"{error} ({error.__cause__ or 'no cause given'})"
        except Uncounted as error:  # so would be the next one, which costs as well
            raise BuildFailed(f"{where}: {error}") from error
        except (BrokenAnswer, openai.APIError, UnicodeDecodeError) as error:
            problem = str(error)
        if attempt == retries or hopeless():
            break
        said = "%s: %s; asked again in %.3g s, at most %d times more"
        _LOG.log(
            logging.WARNING if _is_news(where) else logging.INFO,
            said,
            where,
            problem[:SHOWN],
            min(wait, longest_wait),
            retries - attempt,
        )
        await asyncio.sleep(min(wait, longest_wait))
    remedy = "see that the server works, and run the same command again: what was answered stays"
    raise BuildFailed(f"{where}: tried {attempt + 1} times, last: {problem[: 2 * SHOWN]}; {remedy}")


def _is_news(where: str) -> bool:
    """Whether no trouble of this server was shown lately: many requests meet it together."""
    now = time.monotonic()
    if now - _SHOWN.get(where, -QUIET) < QUIET:
        return False
    _SHOWN[where] = now
    return True


def _message(error: openai.APIStatusError) -> str:
    body: Any = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return _as_text(str(said or error.response.text or error)[:SHOWN])


def _asked_wait(error: openai.APIStatusError, otherwise: float) -> float:
    """Seconds that the server asks to wait; ``otherwise`` where it names none, or a date."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return otherwise
    return seconds if 0 <= seconds < float("inf") else otherwise
