"""What all models on servers share, of language and of images: place, key, patience, kept answers, ceiling on cost."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from twinset.contracts.errors import WrongUse
from twinset.contracts.locations import Location, cache_folder
from twinset.contracts.recipe.allowed import refuse_unbound_key
from twinset.contracts.source import Need, Place
from twinset.models.engines import EngineSettings

REMEDY = "pip install 'twinset[language-models]'"


def _server(url: str) -> str:
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("an address of printable ASCII without spaces; write other names of hosts as xn--...")
    parts = urlsplit(url)
    # Of plain characters, so that everything that reads it sees the same host; a port above 65535 raises.
    plain = re.fullmatch(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?", parts.netloc.rpartition("@")[2])
    if parts.scheme not in ("http", "https") or not plain or not parts.hostname or parts.port == 0:
        raise ValueError("write the address of a server, such as http://127.0.0.1:8000/v1")
    # A recipe lies beside the dataset.
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an address without user, password, query and #; a key comes from api_key_variable")
    return url


class PaidServer(EngineSettings):
    """A base that stands before the others.

    model: its name on the server. base_url: of the API, mostly ending in ``/v1``. api_key_variable: environment
    variable that holds the key, which is stored nowhere, and sent only where the operator bound it to this server
    (docs/security.md). answers: the folder, below OUT or in twinset's cache; ``answers`` in the cache when absent.
    concurrency: requests that wait for an answer at a time. timeout: seconds for one try. retries: of a request that
    met a timeout, a lost connection, an overload or a fault of the server. longest_wait: seconds between two tries, at
    most, whatever the server asks for. max_cost: that all answers may cost, in the unit of the prices.
    """

    model: str = Field(min_length=1)
    base_url: Annotated[str, Place("server", "models"), AfterValidator(_server)]
    api_key_variable: Annotated[str | None, Place("variable", "models")] = Field(
        default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"
    )
    answers: Annotated[Location, Place("cache", "models")] | None = None
    concurrency: int = Field(default=16, ge=1, le=1000)  # connections that the client opens
    timeout: float = Field(default=120, gt=0)
    retries: int = Field(default=6, ge=0, le=100)
    longest_wait: float = Field(default=60, ge=0)
    max_cost: float | None = Field(default=None, gt=0)

    execution: ClassVar[tuple[str, ...]] = (
        *("answers", "api_key_variable", "concurrency", "timeout", "retries", "longest_wait", "max_cost"),
    )

    metered = True

    def api_key(self) -> str:
        """The server's key; ``none`` for a server without one.

        Raises `WrongUse` where the variable holds no key, or the operator has not bound it to this server.
        """
        if self.api_key_variable is None:
            return "none"
        refuse_unbound_key(self.base_url, self.api_key_variable)
        # Files of secrets end with a line break, which no header can hold.
        found = os.environ.get(self.api_key_variable, "").strip()
        if not found:
            raise WrongUse(
                f"api_key_variable: there is no environment variable {self.api_key_variable}; set it to the "
                "server's key, or leave the setting out for a server without one"
            )
        if not found.isascii() or not found.isprintable():
            raise WrongUse(
                f"api_key_variable: the environment variable {self.api_key_variable} holds other characters than "
                "printable ASCII, so that it is not a key; set it again"
            )
        return found

    @property
    def answers_folder(self) -> Path:
        """Where answers are kept."""
        return self.answers or cache_folder() / "answers"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "media" not in needs:
            return
        if find_spec("openai") is None:
            raise WrongUse(f"{key}: openai is not installed; servers are asked with it: {REMEDY}")
        try:
            self.api_key()
        except WrongUse as error:
            raise WrongUse(f"{key}.{error}") from None
