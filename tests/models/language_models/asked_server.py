"""What tests ask of a server, and its simplest answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.models.language_models.chat_server import Body, ChatServer, Reply, completion
from twinset.models.language_models.answers import Message, Request
from twinset.models.language_models.server_model import ServerModel
from twinset.models.language_models.settings import OpenAI

SCHEMA = {"type": "object"}


def requests(count: int, *texts: str) -> list[Request]:
    said = texts or [f"caption {number}" for number in range(count)]
    return [Request((Message("user", text),), number) for number, text in enumerate(said)]


def model(server: ChatServer, folder: Path, **settings: Any) -> ServerModel:
    quick = {"timeout": 300.0, "longest_wait": 0.01, "concurrency": 4, **settings}
    return ServerModel(OpenAI(kind="openai", model="m", base_url=server.url, answers=folder, **quick))


def echo(body: Body, number: int) -> Reply:
    return completion(f"to {body['messages'][-1]['content']}")


def once(fault: Callable[[Body, int], Reply]) -> Callable[[Body, int], Reply]:
    """A fault for the first two requests, and answers after those."""
    return lambda body, number: fault(body, number) if number < 2 else echo(body, number)
